import { randomBytes } from "node:crypto";
import { CookieError } from "../protocol/errors.ts";

interface Held {
  readonly tool: string;
  readonly state: unknown;
  readonly release: (() => void | Promise<void>) | undefined;
}

/** States of calls that were prepared and neither made nor discarded; the oldest gives way. */
const MAX_HELD = 1024;

/** Keeps what a preparation found behind an opaque token, which is good for one call (E-091). */
export class PreparedStates {
  readonly #held = new Map<string, Held>();

  hold(held: Held): string {
    const token = randomBytes(18).toString("base64url");
    this.#held.set(token, held);
    if (this.#held.size > MAX_HELD) {
      const [oldest] = this.#held.keys();
      if (oldest !== undefined) this.discard(oldest);
    }
    return token;
  }

  /** Hands the state over. Throws `prepared_capability_lost` for a token that was used, discarded or never given. */
  take(token: string, tool: string): Held {
    const held = this.peek(token);
    if (held.tool !== tool) throw lost();
    this.#held.delete(token);
    return held;
  }

  /** Looks at the state without using it up; throws like `take`. */
  peek(token: string): Held {
    const held = this.#held.get(token);
    if (held === undefined) throw lost();
    return held;
  }

  discard(token: string): void {
    const held = this.#held.get(token);
    this.#held.delete(token);
    if (held !== undefined) releaseState(held);
  }

  discardAll(): void {
    for (const token of [...this.#held.keys()]) this.discard(token);
  }
}

/** Frees a state that no call will use. A failure concerns nobody. */
export function releaseState(held: Held): void {
  const release = async () => held.release?.();
  release().catch(() => {});
}

function lost(): CookieError {
  return new CookieError(
    "prepared_capability_lost",
    "what was prepared for this call is gone; prepare it again",
  );
}
