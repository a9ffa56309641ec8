import { setImmediate } from "node:timers/promises";

/** Bytes read ahead of whoever takes them. */
const AHEAD_BYTES = 256 * 1024;

/**
 * Reads a body and hands over in one piece what came in one turn of the event loop: servers send an event at a time,
 * and every piece costs a walk through the streams behind.
 */
export class BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #chunks: Uint8Array[] = [];
  #byteLength = 0;
  #end: { readonly error?: unknown } | undefined;
  #wakeTaker: (() => void) | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
    void this.#readAhead();
  }

  /** What has come, at least one byte; undefined at the end. Rejects as the body does, after what came before. */
  async take(): Promise<Uint8Array | undefined> {
    if (this.#chunks.length === 0 && this.#end === undefined) {
      await new Promise<void>((resolve) => {
        this.#wakeTaker = resolve;
      });
    }
    if (this.#end === undefined) await setImmediate();
    const chunks = this.#chunks;
    const [first] = chunks;
    if (first === undefined) {
      if (this.#end !== undefined && "error" in this.#end) throw this.#end.error;
      return undefined;
    }
    this.#chunks = [];
    this.#byteLength = 0;
    this.#wakeReader?.();
    return chunks.length === 1 ? first : Buffer.concat(chunks);
  }

  cancel(reason: unknown): Promise<void> {
    this.#wakeReader?.();
    return this.#reader.cancel(reason);
  }

  async #readAhead(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) break;
        if (value.byteLength === 0) continue;
        this.#chunks.push(value);
        this.#byteLength += value.byteLength;
        this.#wakeTaker?.();
        if (this.#byteLength < AHEAD_BYTES) continue;
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
      }
      this.#end = {};
    } catch (error) {
      this.#end = { error };
    }
    this.#wakeTaker?.();
  }
}
