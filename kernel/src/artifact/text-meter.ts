const NEWLINE = 0x0a;
const NEWLINES = 0x0a0a0a0a;
const LOWEST_BITS = 0x01010101;
const HIGHEST_BITS = 0x80808080;

/** Counts bytes and lines of text that arrives in pieces (T 3.2). */
export class TextMeter {
  #byteLength = 0;
  #newlines = 0;
  #endsInNewline = true;

  add(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length === 0) return;
    this.#newlines += countNewlines(bytes);
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

/** Four bytes at a time: searching for each newline costs many times more when lines are short. */
function countNewlines(bytes: Uint8Array): number {
  const { buffer, byteOffset, length } = bytes;
  const head = (4 - (byteOffset % 4)) % 4;
  if (length < head) return countIn(bytes, 0, length);
  const words = new Uint32Array(buffer, byteOffset + head, Math.floor((length - head) / 4));
  let newlines = countIn(bytes, 0, head);
  for (let i = 0; i < words.length; i += 1) {
    const zeroed = (words[i] ?? 0) ^ NEWLINES;
    // The highest bit of some byte is set exactly when one of the four is zero now.
    if (((zeroed - LOWEST_BITS) & ~zeroed & HIGHEST_BITS) === 0) continue;
    const at = head + i * 4;
    newlines += countIn(bytes, at, at + 4);
  }
  return newlines + countIn(bytes, head + words.length * 4, length);
}

function countIn(bytes: Uint8Array, start: number, end: number): number {
  let newlines = 0;
  for (let i = start; i < end; i += 1) if (bytes[i] === NEWLINE) newlines += 1;
  return newlines;
}
