import type { EventPayloadOf } from "@cookie-agent/sdk/protocol";

type UsageRecord = EventPayloadOf<"model_usage_recorded">;

interface Counters {
  input: number;
  output: number;
  reasoning: number;
  cacheRead: number;
  cacheWrite: number;
  requests: number;
  costPicoUsd: bigint | null;
  cacheKnown: boolean;
}

export interface UsageSummary {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly request_count: number;
  readonly cache_hit_rate: number | null;
  readonly estimated_cost_usd: number | null;
}

/** Token and cost sums over a run; a sum is unpriced as soon as one of its records is (S-235). */
export class UsageRollup {
  readonly #total = emptyCounters();
  readonly #byModel = new Map<string, Counters>();

  add(record: UsageRecord): void {
    const key = record.resolved_model.model;
    const model = this.#byModel.get(key) ?? emptyCounters();
    this.#byModel.set(key, model);
    addRecord(this.#total, record);
    addRecord(model, record);
  }

  summary(): UsageSummary & { by_model: Record<string, UsageSummary> } {
    const by_model: Record<string, UsageSummary> = {};
    for (const [key, counters] of this.#byModel) by_model[key] = summarize(counters);
    return { ...summarize(this.#total), by_model };
  }
}

function emptyCounters(): Counters {
  return {
    input: 0,
    output: 0,
    reasoning: 0,
    cacheRead: 0,
    cacheWrite: 0,
    requests: 0,
    costPicoUsd: 0n,
    cacheKnown: true,
  };
}

function addRecord(counters: Counters, record: UsageRecord): void {
  const { usage, estimated_cost_pico_usd: cost } = record;
  counters.input += usage.input_tokens ?? 0;
  counters.output += usage.output_tokens ?? 0;
  counters.reasoning += usage.output_tokens_reasoning ?? 0;
  counters.cacheRead += usage.input_tokens_cache_read ?? 0;
  counters.cacheWrite += usage.input_tokens_cache_write ?? 0;
  counters.requests += 1;
  counters.costPicoUsd =
    counters.costPicoUsd === null || cost === null ? null : counters.costPicoUsd + BigInt(cost);
  counters.cacheKnown &&= usage.input_tokens !== null && usage.input_tokens_cache_read !== null;
}

function summarize(counters: Counters): UsageSummary {
  const { input, cacheRead, cacheKnown, requests, costPicoUsd } = counters;
  return {
    input_tokens: input,
    output_tokens: counters.output,
    reasoning_tokens: counters.reasoning,
    cache_read_tokens: cacheRead,
    cache_write_tokens: counters.cacheWrite,
    request_count: requests,
    cache_hit_rate: hitRate(requests, cacheKnown, cacheRead, input),
    estimated_cost_usd: costPicoUsd === null || requests === 0 ? null : Number(costPicoUsd) / 1e12,
  };
}

/** Null without records or unless every record reports both counts (S-236). */
function hitRate(requests: number, known: boolean, read: number, input: number): number | null {
  if (requests === 0 || !known) return null;
  return input === 0 ? 0 : Math.min(read, input) / input;
}
