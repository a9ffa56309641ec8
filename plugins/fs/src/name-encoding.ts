const KANA = /[\u3041-\u3096\u30a1-\u30fa]/;

/**
 * Names what bytes that are no UTF-8 text probably are, from a sample of them (T-059). `binary` when nothing fits.
 */
export function nameEncoding(sample: Buffer): string {
  const wide = nameWideEncoding(sample);
  if (wide !== undefined) return wide;
  if (sample.some(isBinaryControl)) return "binary";
  if (KANA.test(decode("shift_jis", sample))) return "Shift_JIS";
  if (KANA.test(decode("euc-jp", sample))) return "EUC-JP";
  return sample.some((byte) => byte >= 0x80 && byte < 0xa0) ? "Windows-1252" : "Latin-1";
}

/** UTF-16 and UTF-32, told by their mark or by where their zero bytes stand; the latter is valid UTF-8 too. */
export function nameWideEncoding(sample: Buffer): string | undefined {
  if (startsWith(sample, [0xff, 0xfe, 0, 0])) return "UTF-32LE";
  if (startsWith(sample, [0, 0, 0xfe, 0xff])) return "UTF-32BE";
  if (startsWith(sample, [0xff, 0xfe])) return "UTF-16LE";
  if (startsWith(sample, [0xfe, 0xff])) return "UTF-16BE";
  if (!sample.includes(0) || sample.length < 4) return undefined;
  let even = 0;
  let odd = 0;
  const length = Math.min(sample.length, 4096) & ~1;
  for (let index = 0; index < length; index += 2) {
    if (sample[index] === 0) even += 1;
    if (sample[index + 1] === 0) odd += 1;
  }
  const half = length / 2;
  if (odd > half * 0.7 && even < half * 0.05) return "UTF-16LE";
  if (even > half * 0.7 && odd < half * 0.05) return "UTF-16BE";
  return undefined;
}

function startsWith(sample: Buffer, mark: readonly number[]): boolean {
  return sample.length >= mark.length && mark.every((byte, index) => sample[index] === byte);
}

function isBinaryControl(byte: number): boolean {
  return byte < 0x09 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b);
}

function decode(label: string, sample: Buffer): string {
  try {
    // `stream` forgives a character that the sample's end cuts.
    return new TextDecoder(label, { fatal: true }).decode(sample, { stream: true });
  } catch {
    return "";
  }
}
