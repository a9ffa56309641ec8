import type { OutputChunk } from "./output-notice.ts";

const TAIL_BYTES = 64 * 1024;
/** Most calls print little. */
const FIRST_BYTES = 4 * 1024;

/** The last 64 KiB of one stream and where they stand in it (D-071, D-072), in a ring that grows up to that. */
export class OutputTail {
  #ring = new Uint8Array(0);
  #endOffset = 0;

  get endOffset(): number {
    return this.#endOffset;
  }

  get startOffset(): number {
    return Math.max(0, this.#endOffset - TAIL_BYTES);
  }

  write(bytes: Uint8Array): void {
    const kept = bytes.subarray(-TAIL_BYTES);
    this.#endOffset += bytes.byteLength - kept.byteLength;
    this.#grow(this.#endOffset + kept.byteLength);
    const at = this.#endOffset % TAIL_BYTES;
    const first = kept.subarray(0, TAIL_BYTES - at);
    this.#ring.set(first, at);
    this.#ring.set(kept.subarray(first.byteLength), 0);
    this.#endOffset += kept.byteLength;
  }

  chunks(): OutputChunk[] {
    const { startOffset, endOffset } = this;
    if (startOffset === endOffset) return [];
    const at = endOffset % TAIL_BYTES;
    const data =
      startOffset === 0
        ? this.#ring.slice(0, endOffset)
        : Buffer.concat([this.#ring.subarray(at), this.#ring.subarray(0, at)]);
    return [{ byteOffset: startOffset, data }];
  }

  /** Before the ring is full its bytes stand from its beginning, so growing is a copy. */
  #grow(byteLength: number): void {
    const needed = Math.min(byteLength, TAIL_BYTES);
    if (needed <= this.#ring.byteLength) return;
    const size = Math.min(Math.max(2 * needed, FIRST_BYTES), TAIL_BYTES);
    const grown = new Uint8Array(size);
    grown.set(this.#ring);
    this.#ring = grown;
  }
}
