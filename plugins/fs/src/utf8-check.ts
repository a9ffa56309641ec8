import { isUtf8 } from "node:buffer";

const EMPTY = Buffer.alloc(0);

/** Validates UTF-8 that arrives in pieces; a character split over two pieces is whole again. */
export class Utf8Check {
  #tail: Buffer = EMPTY;
  #valid = true;

  /** Takes the next piece; keeps no reference to it. */
  push(chunk: Buffer): void {
    if (!this.#valid) return;
    const data = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk]);
    const whole = wholeCharacters(data);
    this.#valid = isUtf8(data.subarray(0, whole));
    this.#tail = whole === data.length ? EMPTY : Buffer.from(data.subarray(whole));
  }

  /** False from the first piece on that cannot be UTF-8. */
  get valid(): boolean {
    return this.#valid;
  }

  /** Whether everything together was UTF-8. */
  end(): boolean {
    return this.#valid && this.#tail.length === 0;
  }
}

/** How many of the bytes are whole characters: all, unless the last one has begun and not ended. */
export function wholeCharacters(data: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, data.length); back += 1) {
    const byte = data[data.length - back] ?? 0;
    if (byte < 0x80) return data.length;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? data.length - back : data.length;
    }
  }
  return data.length;
}
