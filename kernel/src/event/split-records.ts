/** The longest line that is read or written; more than any event with its limits can need. */
export const MAX_RECORD_BYTES = 32 * 1024 * 1024;

const LF = 0x0a;

/** A piece of a buffer: a view of its own would cost as much as the text in it. */
export interface RecordBytes {
  readonly source: Buffer;
  readonly from: number;
  readonly to: number;
}

/** One line of a log, newline excluded. */
export interface RecordLine extends RecordBytes {
  /** Where it begins in the log. */
  readonly startByte: number;
  /** Longer than `MAX_RECORD_BYTES`: its bytes are not kept. */
  readonly isTooLong: boolean;
}

/** Cuts a stream of chunks at newlines; what follows the last newline stays behind as the torn tail. */
export class RecordSplitter {
  /** The beginning of a line that a later chunk ends. */
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

  push(chunk: Uint8Array): RecordLine[] {
    const lines: RecordLine[] = [];
    const source = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    let newline = source.indexOf(LF);
    while (newline >= 0) {
      lines.push(
        this.#partBytes === 0 ? this.#pass(source, from, newline) : this.#join(source, newline),
      );
      from = newline + 1;
      newline = source.indexOf(LF, from);
    }
    if (from < source.byteLength) this.#keep(source.subarray(from));
    return lines;
  }

  #pass(source: Buffer, from: number, to: number): RecordLine {
    const startByte = this.#startByte;
    const byteLength = to - from;
    this.#startByte += byteLength + 1;
    return { source, from, to, startByte, isTooLong: byteLength > MAX_RECORD_BYTES };
  }

  #join(source: Buffer, to: number): RecordLine {
    this.#keep(source.subarray(0, to));
    const byteLength = this.#partBytes;
    const whole = byteLength > MAX_RECORD_BYTES ? EMPTY : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#partBytes = 0;
    return this.#pass(whole, 0, byteLength);
  }

  #keep(part: Uint8Array): void {
    this.#partBytes += part.byteLength;
    if (this.#partBytes > MAX_RECORD_BYTES) this.#parts = [];
    else this.#parts.push(part);
  }
}

const EMPTY = Buffer.alloc(0);
