import type { ModelSelection, Usage } from "./message.ts";
import type { UsageRollup, UsageTotals } from "./usage-methods.ts";

/** What one request used and is estimated to cost, as events record it. */
export interface UsageRecord {
  readonly resolved_model: Pick<ModelSelection, "model">;
  readonly usage: Usage;
  /** Null: unpriced. */
  readonly estimated_cost_pico_usd: number | null;
}

/** Sums over requests. A sum that no number of the wire can carry is unpriced and has no hit rate (S-234). */
export interface UsageCounters {
  requests: number;
  input: number;
  output: number;
  reasoning: number;
  cacheRead: number;
  cacheWrite: number;
  /** Pico-dollars; null as soon as one request is unpriced (S-235). */
  cost: bigint | null;
  /** False as soon as one request did not report both its input and what of it came from a cache (S-236). */
  cacheKnown: boolean;
}

const TOKENS = ["input", "output", "reasoning", "cacheRead", "cacheWrite"] as const;
const MAX_COST = 2n ** 64n - 1n;

export function emptyCounters(): UsageCounters {
  return {
    requests: 0,
    input: 0,
    output: 0,
    reasoning: 0,
    cacheRead: 0,
    cacheWrite: 0,
    cost: 0n,
    cacheKnown: true,
  };
}

/** The counters of one request; what it does not report adds nothing. */
export function countersOf({ usage, estimated_cost_pico_usd: cost }: UsageRecord): UsageCounters {
  return {
    requests: 1,
    input: usage.input_tokens ?? 0,
    output: usage.output_tokens ?? 0,
    reasoning: usage.output_tokens_reasoning ?? 0,
    cacheRead: usage.input_tokens_cache_read ?? 0,
    cacheWrite: usage.input_tokens_cache_write ?? 0,
    cost: cost === null ? null : BigInt(cost),
    cacheKnown: usage.input_tokens !== null && usage.input_tokens_cache_read !== null,
  };
}

export function addCounters(sum: UsageCounters, more: Readonly<UsageCounters>): void {
  sum.requests += more.requests;
  sum.cost = sum.cost === null || more.cost === null ? null : sum.cost + more.cost;
  sum.cacheKnown &&= more.cacheKnown;
  for (const name of TOKENS) {
    sum[name] += more[name];
    if (sum[name] <= Number.MAX_SAFE_INTEGER) continue;
    sum[name] = Number.MAX_SAFE_INTEGER;
    sum.cost = null;
    sum.cacheKnown = false;
  }
  if (sum.cost !== null && sum.cost > MAX_COST) {
    sum.cost = null;
    sum.cacheKnown = false;
  }
}

/** As the wire has it: without a request neither cost nor hit rate is known (S 13). */
export function toTotals(counters: Readonly<UsageCounters>): UsageTotals {
  const { requests, input, cacheRead, cacheKnown, cost } = counters;
  const isKnown = requests > 0 && cacheKnown;
  return {
    input_tokens: input,
    output_tokens: counters.output,
    reasoning_tokens: counters.reasoning,
    cache_read_tokens: cacheRead,
    cache_write_tokens: counters.cacheWrite,
    request_count: requests,
    cache_hit_rate: isKnown ? hitRate(cacheRead, input) : null,
    estimated_cost_usd: requests === 0 || cost === null ? null : Number(cost) / 1e12,
  };
}

function hitRate(cacheRead: number, input: number): number {
  return input === 0 ? 0 : Math.min(cacheRead, input) / input;
}

/** Sums over requests, in total and by model. */
export class UsageSum {
  readonly #total = emptyCounters();
  readonly #byModel = new Map<string, UsageCounters>();

  /** One request. */
  add(record: UsageRecord): void {
    this.merge(record.resolved_model.model, countersOf(record));
  }

  /** What was summed elsewhere for one model. */
  merge(model: string, counters: Readonly<UsageCounters>): void {
    let ofModel = this.#byModel.get(model);
    if (ofModel === undefined) {
      ofModel = emptyCounters();
      this.#byModel.set(model, ofModel);
    }
    addCounters(ofModel, counters);
    addCounters(this.#total, counters);
  }

  /** Everything that another sum holds. */
  mergeAll(other: UsageSum): void {
    for (const [model, counters] of other.#byModel) this.merge(model, counters);
  }

  rollup(): UsageRollup {
    const byModel = [...this.#byModel].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      ...toTotals(this.#total),
      by_model: Object.fromEntries(byModel.map(([model, sum]) => [model, toTotals(sum)])),
    };
  }
}
