import type { ResultOf, UsageGlobal, UsageTotals } from "@cookie-agent/sdk/protocol";
import { printable } from "../printable.ts";
import { formatCost, formatCount } from "./format-amount.ts";
import { type ChartPeriod, groupByPeriod } from "./group-by-period.ts";
import type { TerminalLook } from "./terminal-look.ts";

type Report = ResultOf<typeof UsageGlobal>;

/** Eighths of a character from 1 to 7; eight of them are a full one. */
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/** Told apart by people who see red and green alike. */
const COLORS = [36, 33, 35, 34, 32, 31];
const MOST_BARS = 31;

/** One bar for each day, week or month: what it cost, or its tokens while a price is unknown. */
export function renderUsageChart(report: Report, look: TerminalLook): string {
  const isPriced = report.usage.estimated_cost_usd !== null;
  const measure = (totals: UsageTotals) =>
    isPriced ? (totals.estimated_cost_usd ?? 0) : totals.input_tokens + totals.output_tokens;
  const { unit, periods } = groupByPeriod(report.days ?? [], MOST_BARS);
  const models = Object.keys(report.usage.by_model);
  const bars = periods.map((period) => barOf(period, models, measure));
  const most = Math.max(...bars.map(({ value }) => value));
  if (!(most > 0)) return "";

  const format = isPriced ? formatCost : formatCount;
  const labels = bars.map(({ value }) => (value === 0 ? "-" : format(value)));
  const labelWidth = Math.max(...labels.map((label) => label.length));
  const width = look.columns - "2026-01-31  ".length - labelWidth - 2;
  const lines = bars.map((bar, index) => {
    const label = (labels[index] ?? "").padStart(labelWidth);
    return `${bar.label.padEnd(10)}  ${label}  ${drawBar(bar, width / most, look)}`.trimEnd();
  });
  const title = isPriced ? `cost per ${unit}` : `tokens per ${unit} (not every price is known)`;
  return [title, ...lines, ...legend(models, look)].join("\n");
}

interface Bar {
  readonly label: string;
  readonly value: number;
  /** In the order of the models. */
  readonly parts: readonly number[];
}

function barOf(
  { label, days }: ChartPeriod,
  models: readonly string[],
  measure: (totals: UsageTotals) => number,
): Bar {
  const parts = models.map((model) =>
    days.reduce((sum, { by_model }) => {
      const totals = by_model[model];
      return sum + (totals === undefined ? 0 : measure(totals));
    }, 0),
  );
  return { label, parts, value: parts.reduce((sum, part) => sum + part, 0) };
}

/** Anything above zero is seen. With colours each model has its piece of the bar. */
function drawBar(bar: Bar, perValue: number, look: TerminalLook): string {
  const length = bar.value * perValue;
  if (!look.colors) return piece(length, look);
  let drawn = 0;
  let reached = 0;
  const pieces = bar.parts.map((part, index) => {
    reached += part * perValue;
    const isLast = reached >= length * (1 - 1e-9);
    const cells = isLast ? reached - drawn : Math.round(reached) - drawn;
    if (part === 0 || cells <= 0) return "";
    drawn += cells;
    return `\u001B[${colorOf(index)}m${piece(cells, look)}\u001B[39m`;
  });
  return pieces.join("");
}

function piece(cells: number, { blocks }: TerminalLook): string {
  if (cells <= 0) return "";
  if (!blocks) return "#".repeat(Math.max(1, Math.round(cells)));
  const eighths = Math.max(1, Math.round(cells * 8));
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}

function legend(models: readonly string[], look: TerminalLook): string[] {
  if (!look.colors || models.length < 2) return [];
  const sample = look.blocks ? "█" : "#";
  return models.map(
    (model, index) => `\u001B[${colorOf(index)}m${sample}\u001B[39m ${printable(model)}`,
  );
}

function colorOf(index: number): number {
  return COLORS[index % COLORS.length] ?? 39;
}
