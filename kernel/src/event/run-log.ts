import { setImmediate } from "node:timers/promises";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "./event-draft.ts";

/** A longer block could fill the queue of a subscriber that reads as fast as it can (S-063). */
const MAX_BLOCK = 128;

/** The record of a session: commit events and coalesced ones. */
export interface SessionRecord {
  append(drafts: readonly EventDraft[]): Promise<unknown>;
  appendStream(draft: EventDraft): void;
}

/**
 * The log as one run writes it. What nothing has acted on yet is held and becomes durable in one block with what
 * follows it: a sync costs the same for one event as for ten, and a turn has many.
 *
 * Whoever acts on an event, asks a person, or waits for more than a moment flushes first; so does whoever ends the run
 * because something went wrong in between. A process that dies loses what was held as if it had died a moment earlier.
 */
export class RunLog implements SessionRecord {
  readonly #record: SessionRecord;
  #held: EventDraft[] = [];
  #recorded: Promise<void> = Promise.resolve();
  /** What was lost with a flush whose failure the run has not heard of. */
  #untold: Error | undefined;

  constructor(record: SessionRecord) {
    this.#record = record;
  }

  hold(drafts: readonly EventDraft[]): void {
    this.#held.push(...drafts);
  }

  /** Not recorded yet. */
  get held(): readonly EventDraft[] {
    return this.#held;
  }

  /** Resolves when everything held so far is durable; rejects when it could not be recorded. */
  flush(): Promise<void> {
    const drafts = this.#held;
    if (drafts.length > 0) {
      this.#held = [];
      const before = this.#recorded.catch(() => undefined);
      this.#recorded = before.then(() => this.#write(drafts));
    }
    return this.#recorded;
  }

  /**
   * The log for somebody beside the run, whose flush takes along what the run holds. The run has to learn when that is
   * lost, so such a failure is also that of its next record.
   */
  get beside(): Pick<RunLog, "hold" | "flush"> {
    return { hold: (drafts) => this.hold(drafts), flush: () => this.#flushBeside() };
  }

  /** Records what is held and these events as one block. */
  append(drafts: readonly EventDraft[]): Promise<void> {
    this.hold(drafts);
    return this.flush();
  }

  appendStream(draft: EventDraft): void {
    this.#record.appendStream(draft);
  }

  async #flushBeside(): Promise<void> {
    const drafts = this.#held;
    try {
      await this.flush();
    } catch (error) {
      if (drafts.length > 0 && error instanceof Error) this.#untold ??= error;
      throw error;
    }
  }

  async #write(drafts: readonly EventDraft[]): Promise<void> {
    const lost = this.#untold;
    this.#untold = undefined;
    if (lost !== undefined) throw lost;
    for (let start = 0; start < drafts.length; start += MAX_BLOCK) {
      if (start > 0) await setImmediate();
      await this.#append(drafts.slice(start, start + MAX_BLOCK));
    }
  }

  /** What must not follow fails the run, and takes nothing with it that came before: a turn was paid for and shown. */
  async #append(block: readonly EventDraft[]): Promise<void> {
    try {
      await this.#record.append(block);
    } catch (error) {
      if (isCookieError(error, "engine")) await this.#keepBeginning(block).catch(() => undefined);
      throw error;
    }
  }

  async #keepBeginning(block: readonly EventDraft[]): Promise<void> {
    for (const draft of block) await this.#record.append([draft]);
  }
}
