import type { EventDraft } from "./event-draft.ts";

/** Commit events that must be durable before something acts on them, but not one by one: they become one block. */
export class HeldRecords {
  readonly #append: (drafts: readonly EventDraft[]) => Promise<unknown>;
  #drafts: EventDraft[] = [];

  constructor(append: (drafts: readonly EventDraft[]) => Promise<unknown>) {
    this.#append = append;
  }

  hold(drafts: readonly EventDraft[]): void {
    this.#drafts.push(...drafts);
  }

  /** Resolves when all that was held is durable; rejects when it could not be recorded. */
  async flush(): Promise<void> {
    const drafts = this.#drafts;
    if (drafts.length === 0) return;
    this.#drafts = [];
    await this.#append(drafts);
  }
}
