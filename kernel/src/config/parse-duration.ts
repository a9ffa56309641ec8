import type { TextRule } from "./table-reader.ts";

const DURATION = /^([0-9]+)(ms|s|m|h|d)$/;
const UNIT_MS = { ms: 1n, s: 1000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n } as const;

/** Milliseconds of one number and one unit; undefined when misspelled or beyond 2^53−1 (C-046). */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null || text.length > 32) return undefined;
  const [, digits = "", unit = ""] = match;
  if (!isUnit(unit)) return undefined;
  const durationMs = BigInt(digits) * UNIT_MS[unit];
  return durationMs > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : Number(durationMs);
}

/** As a rule for the decoders. */
export const duration: TextRule = (text) =>
  parseDuration(text) === undefined
    ? "expected a whole number and one of ms, s, m, h, d, within 2^53-1 milliseconds"
    : undefined;

function isUnit(unit: string): unit is keyof typeof UNIT_MS {
  return Object.hasOwn(UNIT_MS, unit);
}
