const DECIMAL = /^\+?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?$/;
const LIMIT = 1n << 128n;
const SCALE = 12;

/**
 * A quoted decimal in 10^-12 USD; undefined when negative, misspelled, finer than 10^-12 or not below 2^128 (C-051).
 * Nothing is ever rounded.
 */
export function parseUsdAmount(text: string): bigint | undefined {
  if (text.length > 256) return undefined;
  const match = DECIMAL.exec(text);
  if (match === null) return undefined;
  const [, whole = "", fraction = "", exponent = "0"] = match;
  const digits = BigInt(whole + fraction);
  if (digits === 0n) return 0n;
  const shift = Number(exponent) - fraction.length + SCALE;
  if (shift > 39) return undefined;
  if (shift >= 0) {
    const scaled = digits * 10n ** BigInt(shift);
    return scaled < LIMIT ? scaled : undefined;
  }
  const divisor = 10n ** BigInt(-shift);
  if (digits % divisor !== 0n) return undefined;
  const scaled = digits / divisor;
  return scaled < LIMIT ? scaled : undefined;
}
