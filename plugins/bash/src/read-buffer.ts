/** Most commands print less than this. */
const FIRST_BYTES = 16 * 1024;
/** A flood goes round in a ring: memory that is used again costs far less than fresh one. */
const RING_BYTES = 1024 * 1024;
/** What a pipe holds at most. */
const READ_BYTES = 64 * 1024;

/** Memory that a pipe is read into, piece by piece in order; a piece stays as it is until it is released. */
export class ReadBuffer {
  #ring: Buffer | undefined;
  #region: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #writtenBytes = 0;
  #releasedBytes = 0;

  /** Where the next read goes; only to be written to while there is room. */
  get region(): Buffer {
    return this.#region;
  }

  /** Whether all of the region may be written to. */
  get hasRoom(): boolean {
    const unreleasedBytes = this.#writtenBytes - Math.max(this.#releasedBytes, FIRST_BYTES);
    return unreleasedBytes + this.#region.length <= RING_BYTES;
  }

  /** Takes what was read into the region, which is another one then. */
  commit(byteLength: number): Buffer {
    const region = this.#region;
    this.#writtenBytes += byteLength;
    const position = this.#writtenBytes - FIRST_BYTES;
    if (position < 0) {
      this.#region = region.subarray(byteLength);
    } else {
      this.#ring ??= Buffer.allocUnsafeSlow(RING_BYTES);
      const at = position % RING_BYTES;
      this.#region = this.#ring.subarray(at, at + READ_BYTES);
    }
    return byteLength === region.length ? region : region.subarray(0, byteLength);
  }

  /** Gives the oldest bytes back. */
  release(byteLength: number): void {
    this.#releasedBytes += byteLength;
  }
}
