import { type EventPayloadOf, UsageSum } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";

type UsageRecord = EventPayloadOf<"model_usage_recorded">;
type Usage = UsageRecord["usage"];

function record(usage: Partial<Usage>, cost: number | null, model = "custom.a/m"): UsageRecord {
  return {
    resolved_model: { model, variant: null },
    usage: {
      input_tokens: null,
      output_tokens: null,
      output_tokens_reasoning: null,
      input_tokens_cache_read: null,
      input_tokens_cache_write: null,
      ...usage,
    },
    estimated_cost_pico_usd: cost,
  } as UsageRecord;
}

test("no record: zeros, and neither rate nor cost is known", () => {
  expect(new UsageSum().rollup()).toEqual({
    input_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    request_count: 0,
    cache_hit_rate: null,
    estimated_cost_usd: null,
    by_model: {},
  });
});

test("records add up, in total and by model", () => {
  const rollup = new UsageSum();
  rollup.add(
    record({ input_tokens: 100, output_tokens: 7, input_tokens_cache_read: 50 }, 1_500_000),
  );
  rollup.add(record({ input_tokens: 100, input_tokens_cache_read: 0 }, 500_000, "custom.b/m"));

  const { by_model, ...total } = rollup.rollup();

  expect(total).toMatchObject({
    input_tokens: 200,
    output_tokens: 7,
    cache_read_tokens: 50,
    request_count: 2,
    cache_hit_rate: 0.25,
    estimated_cost_usd: 0.000002,
  });
  expect(Object.keys(by_model)).toEqual(["custom.a/m", "custom.b/m"]);
  expect(by_model["custom.a/m"]).toMatchObject({ request_count: 1, cache_hit_rate: 0.5 });
});

test("[S-235] [C-054] one unpriced record leaves its sums without a cost", () => {
  const rollup = new UsageSum();
  rollup.add(record({ input_tokens: 1 }, 1000));
  rollup.add(record({ input_tokens: 1 }, null, "custom.b/m"));

  const { estimated_cost_usd, by_model } = rollup.rollup();

  expect(estimated_cost_usd).toBeNull();
  expect(by_model["custom.a/m"]?.estimated_cost_usd).toBe(1e-9);
  expect(by_model["custom.b/m"]?.estimated_cost_usd).toBeNull();
});

test.for([
  { records: [{ input_tokens: 10, input_tokens_cache_read: null }], rate: null },
  { records: [{ input_tokens: null, input_tokens_cache_read: 5 }], rate: null },
  {
    records: [{ input_tokens: 10, input_tokens_cache_read: 5 }, { input_tokens: 10 }],
    rate: null,
  },
  { records: [{ input_tokens: 0, input_tokens_cache_read: 0 }], rate: 0 },
  { records: [{ input_tokens: 10, input_tokens_cache_read: 20 }], rate: 1 },
])("[S-236] the hit rate of $records is $rate", ({ records, rate }) => {
  const rollup = new UsageSum();
  for (const usage of records) rollup.add(record(usage, null));

  expect(rollup.rollup().cache_hit_rate).toBe(rate);
});
