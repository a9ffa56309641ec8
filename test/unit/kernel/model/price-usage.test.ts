import type { Usage } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PriceRates } from "../../../../kernel/src/config/config.ts";
import { compilePrices, priceUsage } from "../../../../kernel/src/model/price-usage.ts";
import { bind, customProvider, runtimeOf } from "./provider-fixture.ts";

const usage = (changes: Partial<Usage> = {}): Usage => ({
  input_tokens: 1000,
  input_tokens_no_cache: null,
  input_tokens_cache_read: 400,
  input_tokens_cache_write: 100,
  output_tokens: 200,
  output_tokens_text: null,
  output_tokens_reasoning: 50,
  ...changes,
});
const price = (rates: PriceRates, used: Usage) => priceUsage(used, compilePrices(rates));
const BASE = { inputPerMillionUsd: "3", outputPerMillionUsd: "15" };

describe("one response", () => {
  test("every category is charged at its own rate", () => {
    const rates = {
      ...BASE,
      cacheReadPerMillionUsd: "0.3",
      cacheWritePerMillionUsd: "3.75",
      reasoningPerMillionUsd: "20",
    };
    // 500 × 3 + 400 × 0.3 + 100 × 3.75 + 150 × 15 + 50 × 20 = 5245 micro-dollars
    expect(price(rates, usage())).toBe(5_245_000_000n);
  });

  test("[C-052] missing reasoning and cache rates are the output and input rates", () => {
    expect(price(BASE, usage())).toBe(6_000_000_000n);
  });

  test("[S-234] twelve decimal places are exact and the sum is rounded half up once", () => {
    const rates = { inputPerMillionUsd: "0.000000000001", outputPerMillionUsd: "0" };
    const tokens = (input: number) =>
      usage({ input_tokens: input, input_tokens_cache_read: 0, input_tokens_cache_write: 0 });
    expect(price(rates, tokens(499_999))).toBe(0n);
    expect(price(rates, tokens(500_000))).toBe(1n);
    expect(price(rates, tokens(1_499_999))).toBe(1n);
  });

  test("a category at the base rate need not be reported", () => {
    const silent = usage({ input_tokens_cache_read: null, output_tokens_reasoning: null });
    expect(price(BASE, silent)).toBe(6_000_000_000n);
  });
});

describe("[C-054] unpriced", () => {
  const apart = { ...BASE, cacheReadPerMillionUsd: "0.3" };
  test.for<[string, PriceRates, Partial<Usage>]>([
    ["no inclusive input", BASE, { input_tokens: null }],
    ["no inclusive output", BASE, { output_tokens: null }],
    ["a split that is priced apart and not reported", apart, { input_tokens_cache_read: null }],
    ["a split larger than its total", apart, { input_tokens_cache_read: 1001 }],
    ["input without a rate", { outputPerMillionUsd: "15" }, {}],
    ["output without a rate", { inputPerMillionUsd: "3" }, {}],
    [
      "a cost beyond 64 bits",
      { ...BASE, inputPerMillionUsd: "99999999999" },
      { input_tokens: Number.MAX_SAFE_INTEGER },
    ],
  ])("%s", ([, rates, changes]) => {
    expect(price(rates, usage(changes))).toBeNull();
  });

  test("no tokens need no rate", () => {
    const rates = { inputPerMillionUsd: "3" };
    const silent = usage({ output_tokens: 0, output_tokens_reasoning: 0 });
    expect(price(rates, silent)).toBe(3_000_000_000n);
  });
});

test("[S-234] cost is the exact sum of tokens times rate, to half a pico-dollar", () => {
  const count = fc.integer({ min: 0, max: 10_000_000 });
  const rate = fc.integer({ min: 0, max: 100_000 }).map((n) => `${Math.floor(n / 100)}.${n % 100}`);
  fc.assert(
    fc.property(count, count, rate, rate, (input, output, inputRate, outputRate) => {
      const pico = (text: string) => {
        const [whole = "", places = ""] = text.split(".");
        return BigInt(whole + places.padEnd(12, "0"));
      };
      const exact = BigInt(input) * pico(inputRate) + BigInt(output) * pico(outputRate);
      const cost = price(
        { inputPerMillionUsd: inputRate, outputPerMillionUsd: outputRate },
        usage({ input_tokens: input, output_tokens: output }),
      );
      const error = (cost ?? -1n) * 1_000_000n - exact;
      return error > -500_000n && error <= 500_000n;
    }),
  );
});

describe("of a model", () => {
  test("an authored price goes by the selected key, and without one usage stays unpriced", async () => {
    const provider = customProvider();
    const pricing = { models: new Map([["custom.test/m", BASE]]) };
    expect((await bind(provider, { pricing })).price(usage())).toBe(6_000_000_000n);
    const other = { models: new Map([["custom.test/wire-model", BASE]]) };
    expect((await bind(provider, { pricing: other })).price(usage())).toBeNull();
  });

  test("the offline model costs nothing", async () => {
    const bound = await runtimeOf(customProvider()).bind({
      model: "offline/script",
      variant: null,
    });
    expect(bound?.price(usage({ input_tokens: null }))).toBe(0n);
  });
});
