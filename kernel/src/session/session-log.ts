import { CookieError, type StoredEvent } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import type { EventLog } from "../event/event-log.ts";

/** A session's log as its actor and its approvals write it; it exists before the log is opened and folded. */
export class SessionLog {
  #log: EventLog | null = null;
  /** Why the last append failed; null once one has succeeded again. */
  failure: CookieError | null = null;

  attach(log: EventLog): void {
    this.#log = log;
  }

  get events(): EventLog {
    if (this.#log === null) throw new CookieError("engine", "the session's log is not open yet");
    return this.#log;
  }

  async append(drafts: readonly EventDraft[]): Promise<StoredEvent[]> {
    const events = await this.events.append(drafts);
    this.failure = null;
    return events;
  }

  appendStream(draft: EventDraft): void {
    this.events.appendStream(draft);
  }
}
