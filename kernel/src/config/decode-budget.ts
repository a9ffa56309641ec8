import type { BudgetConfig } from "./config.ts";
import { duration, parseDuration } from "./parse-duration.ts";
import { TableReader, type TextRule } from "./table-reader.ts";
import { parseUsdAmount } from "./usd-amount.ts";

const positiveCost: TextRule = (text) => {
  const cost = parseUsdAmount(text);
  if (cost === undefined) return "expected an exact decimal in US dollars";
  return cost === 0n ? "must be above zero" : undefined;
};

const positiveDuration: TextRule = (text) =>
  duration(text) ?? (parseDuration(text) === 0 ? "must be above zero" : undefined);

export function decodeBudget(value: unknown, table: string): BudgetConfig {
  const known = ["max_cost_usd", "max_tokens", "max_turns", "max_wall"];
  const reader = new TableReader(value, [table], known);
  const maxCostUsd = reader.string("max_cost_usd", positiveCost);
  const maxTokens = reader.integer("max_tokens", { min: 1 });
  const maxTurns = reader.integer("max_turns", { min: 1 });
  const wall = reader.string("max_wall", positiveDuration);
  const maxWallMs = wall === undefined ? undefined : parseDuration(wall);
  return {
    ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(maxWallMs === undefined ? {} : { maxWallMs }),
  };
}

/** The smaller cap of each kind, so that a workspace can only tighten. */
export function tightestBudget(a: BudgetConfig, b: BudgetConfig): BudgetConfig {
  const maxCostUsd = smaller(a.maxCostUsd, b.maxCostUsd, (text) => parseUsdAmount(text) ?? 0n);
  const maxTokens = smaller(a.maxTokens, b.maxTokens, Number);
  const maxTurns = smaller(a.maxTurns, b.maxTurns, Number);
  const maxWallMs = smaller(a.maxWallMs, b.maxWallMs, Number);
  return {
    ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(maxWallMs === undefined ? {} : { maxWallMs }),
  };
}

function smaller<T>(
  a: T | undefined,
  b: T | undefined,
  weigh: (cap: T) => number | bigint,
): T | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return weigh(b) < weigh(a) ? b : a;
}
