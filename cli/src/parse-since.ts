import { usageError } from "./exit-code.ts";

const AGO = /^(\d{1,9})(s|m|h|d)$/;
const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DATE =
  /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/;

/** A moment as people write it, as a timestamp in UTC: how long ago, a date or a time; without a zone it is local. */
export function parseSince(text: string, nowMs: number): string {
  const [, count, unit] = AGO.exec(text) ?? [];
  if (count !== undefined) {
    return timestamp(nowMs - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS], text);
  }
  if (!DATE.test(text)) throw notAMoment(text);
  // A date alone would be midnight in UTC.
  return timestamp(Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(" ", "T")), text);
}

function timestamp(ms: number, text: string): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() < 0) throw notAMoment(text);
  return date.toISOString();
}

function notAMoment(text: string): Error {
  return usageError(
    `--since "${text}" is no moment; write 90m, 12h, 7d, 2026-01-31 or 2026-01-31T08:00`,
  );
}
