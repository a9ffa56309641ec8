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
      "a cost beyond what an event carries exactly",
      { inputPerMillionUsd: "9007.199254740992", outputPerMillionUsd: "0" },
      { input_tokens: 1_000_000 },
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

describe("[S-234] for any rates and counts", () => {
  const tokens = fc.option(fc.integer({ min: 0, max: 3_000_000 }), { nil: null });
  const pico = fc.option(fc.bigInt(0n, 10n ** 15n), { nil: undefined });
  const asText = (amount: bigint) => {
    const digits = amount.toString().padStart(13, "0");
    return `${digits.slice(0, -12)}.${digits.slice(-12)}`;
  };
  const all = fc.record({
    input: tokens,
    read: tokens,
    write: tokens,
    output: tokens,
    reasoning: tokens,
    rates: fc.record({ in: pico, out: pico, reasoning: pico, read: pico, write: pico }),
  });

  /** Twice the cost in 10^-18 dollars, so that a half is whole; null: it cannot be told. */
  function exact(
    total: number | null,
    rate: bigint | undefined,
    parts: readonly (readonly [number | null, bigint | undefined])[],
  ): bigint | null {
    if (total === null) return null;
    const apart = parts.filter(([, own]) => own !== undefined && own !== rate);
    if (apart.some(([count]) => count === null)) return null;
    const rest = apart.reduce((left, [count]) => left - (count ?? 0), total);
    if (rest < 0 || (rest > 0 && rate === undefined)) return null;
    return apart.reduce(
      (sum, [count, own]) => sum + BigInt(count ?? 0) * (own ?? 0n),
      BigInt(rest) * (rate ?? 0n),
    );
  }

  test("the cost is the exact sum, rounded half up once, or null where a part of it is not known", () => {
    fc.assert(
      fc.property(all, ({ input, read, write, output, reasoning, rates }) => {
        const authored: Record<string, string> = {};
        const state = (name: string, amount: bigint | undefined) => {
          if (amount !== undefined) authored[`${name}PerMillionUsd`] = asText(amount);
        };
        state("input", rates.in);
        state("output", rates.out);
        state("reasoning", rates.reasoning);
        state("cacheRead", rates.read);
        state("cacheWrite", rates.write);
        const cost = price(
          authored as PriceRates,
          usage({
            input_tokens: input,
            input_tokens_cache_read: read,
            input_tokens_cache_write: write,
            output_tokens: output,
            output_tokens_reasoning: reasoning,
          }),
        );
        const ofInput = exact(input, rates.in, [
          [read, rates.read],
          [write, rates.write],
        ]);
        const ofOutput = exact(output, rates.out, [[reasoning, rates.reasoning]]);
        if (ofInput === null || ofOutput === null) {
          expect(cost).toBeNull();
          return;
        }
        const whole = (2n * (ofInput + ofOutput) + 1_000_000n) / 2_000_000n;
        expect(cost).toBe(whole > BigInt(Number.MAX_SAFE_INTEGER) ? null : whole);
      }),
    );
  });

  test("a price may be written in any way that the configuration takes", () => {
    const used = usage({ input_tokens: 1_000_000, output_tokens: 0 });
    for (const three of ["3", "+3.0", "3e0", "0.3E+1", "30e-1"]) {
      const rates = { inputPerMillionUsd: three, outputPerMillionUsd: "1e-12" };
      expect(price(rates, used)).toBe(3_000_000_000_000n);
    }
  });
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
