import type { StoredEvent } from "@cookie-agent/sdk/protocol";
import { cutUtf8 } from "../support/safe-text.ts";

/** Kept of each of the first messages, and of how many. */
const MAX_BYTES = 8 * 1024;
const MAX_KEPT = 64;

/** What the user has said, as far as it is asked about apart from the conversation: the first messages, the latest. */
export class UserInputs {
  readonly #first: string[] = [];
  latest: string | null = null;

  apply({ payload }: StoredEvent): void {
    if (payload.type !== "user_input_submitted") return;
    this.latest = payload.input;
    if (this.#first.length < MAX_KEPT) this.#first.push(cutUtf8(payload.input, MAX_BYTES));
  }

  /** Each cut to 8 KiB; at most 64 are there. */
  get first(): readonly string[] {
    return this.#first;
  }
}
