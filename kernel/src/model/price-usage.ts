import { CookieError, type Usage } from "@cookie-agent/sdk/protocol";
import type { PriceRates } from "../config/config.ts";
import { parseUsdAmount } from "../config/usd-amount.ts";

/** Pico-USD per million tokens; a bigint so that no rate or sum is ever rounded before the end (S-234). */
export interface Prices {
  readonly input: bigint | null;
  readonly output: bigint | null;
  readonly reasoning: bigint | null;
  readonly cacheRead: bigint | null;
  readonly cacheWrite: bigint | null;
}

const PER_MILLION = 1_000_000n;
/** What an event can carry exactly. */
const MAX_COST = BigInt(Number.MAX_SAFE_INTEGER);

/** Missing reasoning takes the output rate, missing cache rates the input rate (C-052). */
export function compilePrices(rates: PriceRates): Prices {
  const input = parseUsd(rates.inputPerMillionUsd);
  const output = parseUsd(rates.outputPerMillionUsd);
  return {
    input,
    output,
    reasoning: parseUsd(rates.reasoningPerMillionUsd) ?? output,
    cacheRead: parseUsd(rates.cacheReadPerMillionUsd) ?? input,
    cacheWrite: parseUsd(rates.cacheWritePerMillionUsd) ?? input,
  };
}

/**
 * The cost of one response in pico-USD, rounded half up once. Null = unpriced: a needed rate or count is missing,
 * the counts contradict each other, or the cost is beyond 2^53 - 1 (C-054).
 */
export function priceUsage(usage: Usage, prices: Prices): bigint | null {
  const input = splitCost(usage.input_tokens, prices.input, [
    { tokens: usage.input_tokens_cache_read, rate: prices.cacheRead },
    { tokens: usage.input_tokens_cache_write, rate: prices.cacheWrite },
  ]);
  const output = splitCost(usage.output_tokens, prices.output, [
    { tokens: usage.output_tokens_reasoning, rate: prices.reasoning },
  ]);
  if (input === null || output === null) return null;
  const cost = (input + output + PER_MILLION / 2n) / PER_MILLION;
  return cost > MAX_COST ? null : cost;
}

interface Category {
  readonly tokens: number | null;
  readonly rate: bigint | null;
}

/** Each category is taken out of the inclusive total; what remains costs the base rate. */
function splitCost(
  total: number | null,
  baseRate: bigint | null,
  categories: readonly Category[],
): bigint | null {
  if (total === null) return null;
  let remainder = BigInt(total);
  let cost = 0n;
  for (const { tokens, rate } of categories) {
    if (rate === baseRate) continue;
    if (tokens === null) return null;
    if (tokens > 0 && rate === null) return null;
    remainder -= BigInt(tokens);
    cost += BigInt(tokens) * (rate ?? 0n);
  }
  if (remainder < 0n) return null;
  if (remainder > 0n && baseRate === null) return null;
  return cost + remainder * (baseRate ?? 0n);
}

function parseUsd(decimal: string | undefined): bigint | null {
  if (decimal === undefined) return null;
  const amount = parseUsdAmount(decimal);
  if (amount !== undefined) return amount;
  throw new CookieError(
    "runtime_compile_failed",
    `the price ${JSON.stringify(decimal)} is not a decimal that is exact in 10^-12 US dollars`,
  );
}

/** The cost of a response as events carry it: integer pico-USD, null when it cannot be priced (S-233). */
export function stampedCost(
  model: { price(usage: Usage): bigint | null },
  usage: Usage,
): number | null {
  const cost = model.price(usage);
  return cost !== null && cost <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(cost) : null;
}
