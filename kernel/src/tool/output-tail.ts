import type { OutputChunk } from "./output-notice.ts";

const TAIL_BYTES = 64 * 1024;
/** Smaller writes are joined, so that a chatty stream costs memory by bytes and not by writes. */
const JOIN_BYTES = 4 * 1024;

/** The last 64 KiB of one stream and where they stand in it (D-071, D-072). */
export class OutputTail {
  readonly #pieces: Uint8Array[] = [];
  #pending = "";
  #pendingBytes = 0;
  #keptBytes = 0;
  #endOffset = 0;

  get endOffset(): number {
    return this.#endOffset;
  }

  get startOffset(): number {
    return this.#endOffset - this.#keptBytes - this.#pendingBytes;
  }

  write(text: string): void {
    const byteLength = Buffer.byteLength(text, "utf8");
    this.#pending += text;
    this.#pendingBytes += byteLength;
    this.#endOffset += byteLength;
    if (this.#pendingBytes >= JOIN_BYTES) this.#settle();
  }

  chunks(): OutputChunk[] {
    this.#settle();
    let byteOffset = this.startOffset;
    return this.#pieces.map((data) => {
      const chunk = { byteOffset, data };
      byteOffset += data.byteLength;
      return chunk;
    });
  }

  #settle(): void {
    if (this.#pendingBytes === 0) return;
    const bytes = Buffer.from(this.#pending, "utf8");
    // Only what is kept may stay alive, not the buffer it was cut from.
    const piece = bytes.byteLength > TAIL_BYTES ? Buffer.from(bytes.subarray(-TAIL_BYTES)) : bytes;
    this.#pieces.push(piece);
    this.#keptBytes += piece.byteLength;
    this.#pending = "";
    this.#pendingBytes = 0;
    while (this.#keptBytes > TAIL_BYTES) this.#dropExcess();
  }

  #dropExcess(): void {
    const excess = this.#keptBytes - TAIL_BYTES;
    const first = this.#pieces[0];
    if (first === undefined) return;
    if (first.byteLength <= excess) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(excess);
    this.#keptBytes -= Math.min(first.byteLength, excess);
  }
}
