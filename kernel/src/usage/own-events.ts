import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";

/**
 * Tells where a session's own record begins. A fork starts with a copy of another session's events, which were paid
 * for there; its own begin at the first marker that hides nothing (S 12.2). Only a session whose first event is older
 * than its id can be a fork: an id carries the time it was made.
 */
export class OwnEvents {
  readonly #madeAtMs: number;
  #isCopy = false;

  constructor(sessionId: SessionId) {
    this.#madeAtMs = Number.parseInt(sessionId.slice(0, 8) + sessionId.slice(9, 13), 16);
  }

  /** True for the event at which everything before it turns out to be another session's. */
  beginsAt({ seq, timestamp, payload }: StoredEvent): boolean {
    if (payload.type === "session_created") {
      this.#isCopy = Date.parse(timestamp) < this.#madeAtMs;
      return false;
    }
    if (!this.#isCopy || payload.type !== "session_reverted") return false;
    if (payload.through_seq !== seq - 1 || Date.parse(timestamp) < this.#madeAtMs) return false;
    this.#isCopy = false;
    return true;
  }
}
