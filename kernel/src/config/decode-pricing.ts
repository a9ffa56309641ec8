import type { PriceRates, PricingConfig } from "./config.ts";
import { TableReader, type TextRule } from "./table-reader.ts";
import { modelKey } from "./text-rules.ts";
import { parseUsdAmount } from "./usd-amount.ts";

const RATES: ReadonlyMap<string, keyof PriceRates> = new Map([
  ["input_per_million_usd", "inputPerMillionUsd"],
  ["output_per_million_usd", "outputPerMillionUsd"],
  ["reasoning_per_million_usd", "reasoningPerMillionUsd"],
  ["cache_read_per_million_usd", "cacheReadPerMillionUsd"],
  ["cache_write_per_million_usd", "cacheWritePerMillionUsd"],
]);

const exactRate: TextRule = (text) =>
  parseUsdAmount(text) === undefined
    ? "expected a non-negative decimal that is exact in 10^-12 US dollars"
    : undefined;

export function decodePricing(value: unknown, table: string): PricingConfig {
  const reader = new TableReader(value, [table], ["models"]);
  const models = new Map<string, PriceRates>();
  const entries = reader.table("models");
  for (const key of entries?.keys() ?? []) {
    const problem = modelKey(key);
    if (problem !== undefined) throw reader.fail("invalid_value", ["models", key], problem);
    models.set(key, decodeRates(entries?.table(key, [...RATES.keys()])));
  }
  return { models };
}

function decodeRates(reader: TableReader | undefined): PriceRates {
  const rates: { -readonly [K in keyof PriceRates]: PriceRates[K] } = {};
  for (const [key, name] of RATES) {
    if (reader?.has(key) && typeof reader.value(key) !== "string") {
      throw reader.fail("invalid_type", key, "expected a decimal in quotes", "put it in quotes");
    }
    const rate = reader?.string(key, exactRate);
    if (rate !== undefined) rates[name] = rate;
  }
  return rates;
}
