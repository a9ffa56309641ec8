/** Most commands print less than this. */
const FIRST_BYTES = 16 * 1024;
/** A flood goes round in a ring: memory that is used again costs far less than fresh one. */
const RING_BYTES = 1024 * 1024;
/** What a pipe holds at most. */
const READ_BYTES = 64 * 1024;

/** Memory that a pipe is read into, in order; what was taken out of it stays as it is until it is released. */
export class ReadBuffer {
  readonly #first = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #ring: Buffer | undefined;
  #region: Buffer = this.#first;
  #writtenBytes = 0;
  #takenBytes = 0;
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

  /** So much was read into the region, which is another one now. */
  commit(byteLength: number): void {
    this.#writtenBytes += byteLength;
    this.#region = this.#after(this.#writtenBytes, READ_BYTES);
  }

  /** Everything read since the last time. */
  take(): Buffer[] {
    const taken: Buffer[] = [];
    while (this.#takenBytes < this.#writtenBytes) {
      const piece = this.#after(this.#takenBytes, this.#writtenBytes - this.#takenBytes);
      taken.push(piece);
      this.#takenBytes += piece.length;
    }
    return taken;
  }

  /** What was taken is needed no more. */
  release(): void {
    this.#releasedBytes = this.#takenBytes;
  }

  /** The memory from `position` on, at most up to where it goes on elsewhere. */
  #after(position: number, maxBytes: number): Buffer {
    if (position < FIRST_BYTES) return this.#first.subarray(position, position + maxBytes);
    this.#ring ??= Buffer.allocUnsafeSlow(RING_BYTES);
    const at = (position - FIRST_BYTES) % RING_BYTES;
    return this.#ring.subarray(at, at + maxBytes);
  }
}
