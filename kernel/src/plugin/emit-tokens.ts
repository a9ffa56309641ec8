import type { ContextId, SessionId } from "@cookie-agent/sdk/protocol";
import { createId } from "../support/create-id.ts";

export interface EmitTokenLimits {
  /** Life of a notification's token, from its delivery. */
  readonly lifeMs: number;
  readonly active: number;
  readonly spent: number;
  readonly spentMs: number;
}

/** What a token that was shown is worth (E-149). */
export type EmitToken =
  | { readonly state: "good" | "spent"; readonly sessionId: SessionId }
  | { readonly state: "unknown" };

interface Spent {
  readonly sessionId: SessionId;
  readonly forgetAtMs: number;
}

interface Active {
  readonly sessionId: SessionId;
  /** Infinite until the notification is written, or the request has timed out. */
  expiresAtMs: number;
}

/** The rights of one connection to publish: each serves one `plugin/emit` and then is spent (E-148). */
export class EmitTokens {
  readonly #limits: EmitTokenLimits;
  readonly #now: () => number;
  /** Of notifications; written one after another, so they also expire in this order. */
  readonly #delivered = new Map<ContextId, Active>();
  /** Of open requests; no more of them than may be in flight, and no flood of events takes their place. */
  readonly #requests = new Map<ContextId, Active>();
  readonly #spent = new Map<ContextId, Spent>();

  /** @param now Milliseconds that only grow. */
  constructor(limits: EmitTokenLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** A token for a notification that is about to be written. */
  issue(sessionId: SessionId): ContextId {
    this.#expire();
    const [oldest] = this.#delivered.keys();
    if (oldest !== undefined && this.#delivered.size >= this.#limits.active) this.spend(oldest);
    const id = createId<ContextId>();
    this.#delivered.set(id, { sessionId, expiresAtMs: Number.POSITIVE_INFINITY });
    return id;
  }

  /** The notification is on its way: the token's life begins. */
  activate(id: ContextId): void {
    const token = this.#delivered.get(id);
    if (token !== undefined) token.expiresAtMs = this.#now() + this.#limits.lifeMs;
  }

  /** The context of a request, good until `spend`. */
  open(id: ContextId, sessionId: SessionId): void {
    this.#requests.set(id, { sessionId, expiresAtMs: Number.POSITIVE_INFINITY });
  }

  /** The token of a request has only so long to live. */
  endWithin(id: ContextId, lifeMs: number): void {
    const token = this.#requests.get(id);
    if (token !== undefined) token.expiresAtMs = this.#now() + lifeMs;
  }

  /** What is worth something is spent by this, whatever comes of it. */
  redeem(id: ContextId): EmitToken {
    this.#expire();
    const active = this.#delivered.get(id) ?? this.#requests.get(id);
    if (active !== undefined) {
      const good = active.expiresAtMs > this.#now();
      this.spend(id);
      return { state: good ? "good" : "spent", sessionId: active.sessionId };
    }
    const spent = this.#spent.get(id);
    return spent === undefined
      ? { state: "unknown" }
      : { state: "spent", sessionId: spent.sessionId };
  }

  /** Ends a token that was not used, or its request. */
  spend(id: ContextId): void {
    const active = this.#delivered.get(id) ?? this.#requests.get(id);
    if (active === undefined) return;
    this.#delivered.delete(id);
    this.#requests.delete(id);
    this.#remember(id, active.sessionId);
  }

  clear(): void {
    this.#delivered.clear();
    this.#requests.clear();
    this.#spent.clear();
  }

  #remember(id: ContextId, sessionId: SessionId): void {
    const [oldest] = this.#spent.keys();
    if (oldest !== undefined && this.#spent.size >= this.#limits.spent) this.#spent.delete(oldest);
    this.#spent.set(id, { sessionId, forgetAtMs: this.#now() + this.#limits.spentMs });
  }

  /** Looked at on use only, so that no timer runs for it. */
  #expire(): void {
    const nowMs = this.#now();
    for (const [id, { expiresAtMs }] of this.#delivered) {
      if (expiresAtMs > nowMs) break;
      this.spend(id);
    }
    for (const [id, { forgetAtMs }] of this.#spent) {
      if (forgetAtMs > nowMs) break;
      this.#spent.delete(id);
    }
  }
}
