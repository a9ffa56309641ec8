import type { UsageRollup } from "@cookie-agent/sdk/protocol";

export interface ChartPeriod {
  /** The day, the Monday of the week, or the month. */
  readonly label: string;
  readonly days: readonly UsageRollup[];
}

const DAY_MS = 86_400_000;

/**
 * Days without a gap between the first and the last one; put together by week or month when they are more than fit.
 * Months that are still too many begin later.
 */
export function groupByPeriod(
  days: readonly { readonly day: string; readonly usage: UsageRollup }[],
  most: number,
): { unit: "day" | "week" | "month"; periods: ChartPeriod[] } {
  const first = days[0]?.day;
  const last = days.at(-1)?.day;
  if (first === undefined || last === undefined) return { unit: "day", periods: [] };
  const range = daysBetween(first, last);
  for (const [unit, labelOf] of UNITS) {
    const labels = [...new Set(range.map(labelOf))];
    if (labels.length > most && unit !== "month") continue;
    const periods = labels.slice(-most).map((label) => ({
      label,
      days: days.filter(({ day }) => labelOf(day) === label).map(({ usage }) => usage),
    }));
    return { unit, periods };
  }
  return { unit: "day", periods: [] };
}

const UNITS = [
  ["day", (day: string) => day],
  ["week", mondayOf],
  ["month", (day: string) => day.slice(0, 7)],
] as const;

function daysBetween(first: string, last: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY_MS) days.push(isoDay(at));
  return days;
}

function mondayOf(day: string): string {
  const at = Date.parse(day);
  return isoDay(at - ((new Date(at).getUTCDay() + 6) % 7) * DAY_MS);
}

function isoDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
