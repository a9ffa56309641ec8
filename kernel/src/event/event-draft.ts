import type { EventPayload, RunId } from "@cookie-agent/sdk/protocol";

/** An event before the log gives it a sequence number and a time. */
export interface EventDraft {
  readonly payload: EventPayload;
  /** The run it belongs to; null for a runless event (S 2.2). */
  readonly runId: RunId | null;
}
