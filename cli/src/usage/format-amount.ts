const STEPS = [
  [1e9, "G"],
  [1e6, "M"],
  [1e4, "k"],
] as const;

/** A number of tokens in at most six characters: exact below ten thousand. */
export function formatCount(count: number): string {
  for (const [from, unit] of STEPS) {
    if (count < from) continue;
    const scaled = count / (unit === "k" ? 1e3 : from);
    return `${scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)}${unit}`;
  }
  return String(count);
}

/** US dollars with two significant digits at least; a cost that is not known is never shown as a number. */
export function formatCost(usd: number | null): string {
  if (usd === null) return "unknown";
  if (usd === 0) return "$0.00";
  const digits = Math.min(12, Math.max(2, 1 - Math.floor(Math.log10(usd))));
  return `$${usd.toFixed(digits)}`;
}

export function formatShare(share: number | null): string {
  return share === null ? "-" : `${Math.round(share * 100)}%`;
}
