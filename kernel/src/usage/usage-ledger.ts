import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import { OwnEvents } from "./own-events.ts";
import type { SessionSpend } from "./session-spend.ts";
import { encodeUsage, type StoredUsage } from "./stored-usage.ts";
import { UsageCells } from "./usage-cells.ts";
import { usageOf } from "./usage-event.ts";

/**
 * What a session has really used: every record of its own log, hidden ones too, without what a fork copied. Fed each
 * event of the log once; its cost per event does not depend on the length of the session.
 */
export class UsageLedger {
  readonly cells = new UsageCells();
  readonly #own: OwnEvents;
  readonly #beginSpend: (() => SessionSpend) | undefined;
  #spend: SessionSpend | undefined;

  /** @param beginSpend An empty account of the tree's budget; absent: there is none. */
  constructor(sessionId: SessionId, beginSpend?: () => SessionSpend) {
    this.#own = new OwnEvents(sessionId);
    this.#beginSpend = beginSpend;
    this.#spend = beginSpend?.();
  }

  apply(event: StoredEvent): void {
    if (this.#own.beginsAt(event)) {
      this.cells.clear();
      this.#spend = this.#beginSpend?.();
    }
    this.#spend?.apply(event);
    const used = usageOf(event.payload);
    if (used !== null) this.cells.add(used, event.timestamp);
  }

  /** Closes the account of a log that nobody writes. */
  settle(): void {
    this.#spend?.endRun();
  }

  /** For the metadata of a log of this length; undefined when it is too much for a cache. */
  encode(logBytes: number): StoredUsage | undefined {
    return encodeUsage(this.cells, logBytes);
  }
}
