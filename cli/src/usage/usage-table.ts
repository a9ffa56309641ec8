import type { ResultOf, UsageGlobal, UsageTotals } from "@cookie-agent/sdk/protocol";
import { printable } from "../printable.ts";
import { formatCost, formatCount, formatShare } from "./format-amount.ts";

type Report = ResultOf<typeof UsageGlobal>;

const HEADER = ["DAY", "MODEL", "REQUESTS", "INPUT", "OUTPUT", "CACHED", "COST"];
/** Columns of words; the others hold numbers and end together. */
const WORDS = 2;

/** One line for each day and model, newest day last, then the sum of everything. */
export function renderUsageTable(report: Report): string {
  const rows = (report.days ?? []).flatMap(({ day, usage }) =>
    Object.entries(usage.by_model).map(([model, totals], index) => [
      index === 0 ? day : "",
      printable(model),
      ...amounts(totals),
    ]),
  );
  const sums = Object.entries(report.usage.by_model).map(([model, totals], index) => [
    index === 0 ? "all days" : "",
    printable(model),
    ...amounts(totals),
  ]);
  const all = ["total", "", ...amounts(report.usage)];
  return align([HEADER, ...rows, ...(rows.length > sums.length ? sums : []), all]);
}

function amounts(totals: UsageTotals): string[] {
  return [
    String(totals.request_count),
    formatCount(totals.input_tokens),
    formatCount(totals.output_tokens),
    formatShare(totals.cache_hit_rate),
    formatCost(totals.estimated_cost_usd),
  ];
}

function align(rows: readonly (readonly string[])[]): string {
  const widths = HEADER.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const pad = (cell: string, column: number): string => {
    const width = widths[column] ?? 0;
    return column < WORDS ? cell.padEnd(width) : cell.padStart(width);
  };
  return rows.map((row) => row.map(pad).join("  ").trimEnd()).join("\n");
}
