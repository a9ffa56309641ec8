import { type EventPayloadOf, UsageSum } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
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

test("it makes no difference how records are put together before they are summed", () => {
  const known = fc.option(fc.maxSafeNat(), { nil: null });
  const some = fc.record({
    model: fc.constantFrom("custom.a/m", "custom.b/m"),
    input: known,
    read: known,
    cost: known,
  });
  const groups = fc.array(fc.array(some, { maxLength: 4 }), { maxLength: 6 });
  fc.assert(
    fc.property(groups, (grouped) => {
      const [flat, nested] = [new UsageSum(), new UsageSum()];
      for (const group of grouped) {
        const sum = new UsageSum();
        for (const { model, input, read, cost } of group) {
          const usage = { input_tokens: input, input_tokens_cache_read: read };
          flat.add(record(usage, cost, model));
          sum.add(record(usage, cost, model));
        }
        nested.mergeAll(sum);
      }
      expect(nested.rollup()).toEqual(flat.rollup());
    }),
  );
});

test("[S-234] a sum that no number can carry has neither cost nor hit rate, and does not wrap", () => {
  const sum = new UsageSum();
  const most = Number.MAX_SAFE_INTEGER;
  sum.add(record({ input_tokens: most, input_tokens_cache_read: 1 }, 1));
  expect(sum.rollup()).toMatchObject({ input_tokens: most, estimated_cost_usd: 1e-12 });
  sum.add(record({ input_tokens: 1, input_tokens_cache_read: 1 }, 1));
  expect(sum.rollup()).toMatchObject({
    input_tokens: most,
    cache_hit_rate: null,
    estimated_cost_usd: null,
  });
  const dear = new UsageSum();
  for (let times = 0; times < 2048; times += 1) {
    dear.add(record({ input_tokens: 1, input_tokens_cache_read: 1 }, most));
  }
  expect(dear.rollup().estimated_cost_usd).toBeGreaterThan(18e6);
  dear.add(record({ input_tokens: 1, input_tokens_cache_read: 1 }, most));
  expect(dear.rollup()).toMatchObject({ estimated_cost_usd: null, cache_hit_rate: null });
});
