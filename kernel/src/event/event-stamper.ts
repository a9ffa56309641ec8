import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "./event-draft.ts";

/** Makes drafts the events of one session: their seqs, and a time that never runs backwards. */
export class EventStamper {
  readonly #sessionId: SessionId;
  readonly #now: () => Date;
  #lastTimeMs = 0;
  #lastTimestamp = "";

  constructor(sessionId: SessionId, now: () => Date = () => new Date()) {
    this.#sessionId = sessionId;
    this.#now = now;
  }

  /** Takes note of an event that the log has already. */
  fold({ timestamp }: StoredEvent): void {
    // Events of one block share their time.
    if (timestamp === this.#lastTimestamp) return;
    this.#lastTimestamp = timestamp;
    const timeMs = Date.parse(timestamp);
    if (timeMs > this.#lastTimeMs) this.#lastTimeMs = timeMs;
  }

  /** The events that follow from `firstSeq` on, all of one moment. */
  stamp(drafts: readonly EventDraft[], firstSeq: number): StoredEvent[] {
    this.#lastTimeMs = Math.max(this.#lastTimeMs, this.#now().getTime());
    const timestamp = new Date(this.#lastTimeMs).toISOString();
    return drafts.map(({ payload, runId }, index) => {
      const seq = firstSeq + index;
      return { session_id: this.#sessionId, run_id: runId, seq, timestamp, payload };
    });
  }
}
