/** Larger parts are kept as they came; smaller ones are copied together, so that dribbles cost their bytes only. */
const KEPT_BYTES = 4 * 1024;
const GATHERED_BYTES = 16 * 1024;

/** Gathers the bytes behind one line, as far as possible without a copy. */
export class RawIntake {
  readonly #parts: Buffer[] = [];
  #missingBytes: number;
  #gathered = Buffer.alloc(0);
  #gatheredBytes = 0;

  constructor(byteLength: number) {
    this.#missingBytes = byteLength;
  }

  get missingBytes(): number {
    return this.#missingBytes;
  }

  /** All of them, once none is missing. */
  get parts(): readonly Uint8Array[] {
    this.#settle();
    return this.#parts;
  }

  /** Takes the beginning of `chunk` and tells how much that was. */
  take(chunk: Buffer): number {
    const part = chunk.subarray(0, this.#missingBytes);
    if (part.length >= KEPT_BYTES) {
      this.#settle();
      this.#parts.push(part);
    } else {
      this.#gather(part);
    }
    this.#missingBytes -= part.length;
    return part.length;
  }

  #gather(part: Buffer): void {
    if (this.#gatheredBytes + part.length > this.#gathered.length) {
      this.#settle();
      this.#gathered = Buffer.allocUnsafeSlow(Math.min(this.#missingBytes, GATHERED_BYTES));
    }
    this.#gatheredBytes += part.copy(this.#gathered, this.#gatheredBytes);
  }

  #settle(): void {
    if (this.#gatheredBytes === 0) return;
    this.#parts.push(this.#gathered.subarray(0, this.#gatheredBytes));
    this.#gathered = this.#gathered.subarray(this.#gatheredBytes);
    this.#gatheredBytes = 0;
  }
}
