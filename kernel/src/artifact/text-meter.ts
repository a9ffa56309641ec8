const NEWLINE = 0x0a;
const NEWLINES = 0x0a0a0a0a;
const LOW_BITS = 0x7f7f7f7f;
/** Each byte of a sum can hold so many ones. */
const SUM_WORDS = 255;
/** Searching for the next newline is the faster way while lines are at least this long. */
const LONG_LINE_BYTES = 48;
const JUDGED_BYTES = 1024;

/** Counts bytes and lines of text that arrives in pieces (T 3.2). */
export class TextMeter {
  #byteLength = 0;
  #newlines = 0;
  #endsInNewline = true;

  add(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length === 0) return;
    this.#newlines += countNewlines(Buffer.from(bytes.buffer, bytes.byteOffset, length));
    this.#byteLength += length;
    this.#endsInNewline = bytes[length - 1] === NEWLINE;
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  get lineCount(): number {
    return this.#newlines + (this.#endsInNewline ? 0 : 1);
  }
}

function countNewlines(bytes: Buffer): number {
  let newlines = 0;
  let start = 0;
  for (;;) {
    const at = bytes.indexOf(NEWLINE, start);
    if (at < 0) return newlines;
    newlines += 1;
    start = at + 1;
    if (newlines * LONG_LINE_BYTES > start + JUDGED_BYTES) break;
  }
  return newlines + countInWords(bytes.subarray(start));
}

/** Four bytes at a time, in the same time whatever they are. */
function countInWords(bytes: Uint8Array): number {
  const { buffer, byteOffset, length } = bytes;
  // Words must begin at a multiple of four, which so few bytes may not reach.
  if (length < 4) return countOneByOne(bytes, 0, length);
  const head = (4 - (byteOffset % 4)) % 4;
  const words = new Int32Array(buffer, byteOffset + head, Math.floor((length - head) / 4));
  let newlines = countOneByOne(bytes, 0, head);
  for (let start = 0; start < words.length; start += SUM_WORDS) {
    let sum = 0;
    const end = Math.min(words.length, start + SUM_WORDS);
    for (let i = start; i < end; i += 1) {
      const word = (words[i] ?? 0) ^ NEWLINES;
      // Of each byte that is zero now, and of no other, the highest bit remains and becomes a one.
      sum = (sum + (~(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS) >>> 7)) | 0;
    }
    newlines += (sum & 255) + ((sum >>> 8) & 255) + ((sum >>> 16) & 255) + (sum >>> 24);
  }
  return newlines + countOneByOne(bytes, head + words.length * 4, length);
}

function countOneByOne(bytes: Uint8Array, start: number, end: number): number {
  let newlines = 0;
  for (let i = start; i < end; i += 1) if (bytes[i] === NEWLINE) newlines += 1;
  return newlines;
}
