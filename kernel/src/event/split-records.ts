/** The longest line that is read or written; more than any event with its limits can need. */
export const MAX_RECORD_BYTES = 32 * 1024 * 1024;

const LF = 0x0a;

/** One line of a log as bytes, newline excluded. */
export interface RecordLine {
  /** Null: longer than `MAX_RECORD_BYTES`, not kept. */
  readonly bytes: Uint8Array | null;
  readonly startByte: number;
  /** After the newline. */
  readonly endByte: number;
}

/** Cuts a stream of chunks at newlines; what follows the last newline stays behind as the torn tail. */
export class RecordSplitter {
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #startByte: number;

  constructor(startByte: number) {
    this.#startByte = startByte;
  }

  /** Where the next line begins; at the end of the input, the end of the last complete line. */
  get startByte(): number {
    return this.#startByte;
  }

  *push(chunk: Uint8Array): Generator<RecordLine> {
    let from = 0;
    let newline = chunk.indexOf(LF);
    while (newline >= 0) {
      this.#keep(chunk.subarray(from, newline));
      yield this.#finish();
      from = newline + 1;
      newline = chunk.indexOf(LF, from);
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(part: Uint8Array): void {
    if (part.byteLength === 0) return;
    this.#partBytes += part.byteLength;
    if (this.#partBytes > MAX_RECORD_BYTES) this.#parts = [];
    else this.#parts.push(part);
  }

  #finish(): RecordLine {
    const [only] = this.#parts;
    const whole = this.#parts.length === 1 && only ? only : Buffer.concat(this.#parts);
    const startByte = this.#startByte;
    const endByte = startByte + this.#partBytes + 1;
    const bytes = this.#partBytes > MAX_RECORD_BYTES ? null : whole;
    this.#parts = [];
    this.#partBytes = 0;
    this.#startByte = endByte;
    return { bytes, startByte, endByte };
  }
}
