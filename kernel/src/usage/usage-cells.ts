import {
  addCounters,
  countersOf,
  emptyCounters,
  type UsageCounters,
  type UsageRecord,
} from "@cookie-agent/sdk/protocol";

/** Every time zone is a whole number of these away from UTC, so days of all zones can be put together from them. */
export const QUARTER_MS = 900_000;

/** What one model used for one agent in a quarter of an hour. */
export interface UsageCell extends UsageCounters {
  /** Quarters of an hour since 1970, UTC. */
  readonly quarter: number;
  readonly model: string;
  readonly agent: string;
}

/** The usage of a session by quarter of an hour, model and agent. */
export class UsageCells {
  readonly #cells = new Map<string, UsageCell>();

  add(record: UsageRecord & { readonly agent_id: string }, timestamp: string): void {
    const quarter = Math.floor(Date.parse(timestamp) / QUARTER_MS);
    const { model } = record.resolved_model;
    const key = `${quarter} ${record.agent_id} ${model}`;
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = { quarter, model, agent: record.agent_id, ...emptyCounters() };
      this.#cells.set(key, cell);
    }
    addCounters(cell, countersOf(record));
  }

  clear(): void {
    this.#cells.clear();
  }

  get size(): number {
    return this.#cells.size;
  }

  [Symbol.iterator](): IterableIterator<UsageCell> {
    return this.#cells.values();
  }
}
