import { CookieError } from "../protocol/errors.ts";

const MAX_PENDING_WRITES = 64;
const MAX_WRITE_BYTES = 64 * 1024;

/** Standard input of one call: filled by the kernel, read by the tool (E-106). */
export class StdinFeed implements AsyncIterable<Uint8Array> {
  readonly #pending: Uint8Array[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  /** False after eof or the end of the call. Throws `busy` when the tool has not read 64 earlier writes. */
  write(data: Uint8Array, eof: boolean): boolean {
    if (this.#ended) return false;
    if (data.length > MAX_WRITE_BYTES) {
      throw new CookieError("limit_exceeded", `one write may hold ${MAX_WRITE_BYTES} bytes`, {
        data: { limit: MAX_WRITE_BYTES },
      });
    }
    if (data.length > 0) {
      if (this.#pending.length >= MAX_PENDING_WRITES) {
        throw new CookieError("busy", `${MAX_PENDING_WRITES} writes wait to be read; try again`);
      }
      this.#pending.push(data);
    }
    if (eof) this.#ended = true;
    this.#wake?.();
    return true;
  }

  /** No more input; what was accepted can still be read. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const next = this.#pending.shift();
      if (next !== undefined) yield next;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
