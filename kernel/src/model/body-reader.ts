import type { Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";

/**
 * Reads a body and hands over in one piece what came in one turn of the event loop: servers send an event at a time,
 * and every piece costs a walk through the streams behind.
 */
export class BodyReader {
  readonly #body: Readable;
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(body: Readable) {
    this.#body = body;
    body.on("readable", () => this.#wake?.());
    body.once("end", () => this.#finish({}));
    body.on("error", (error) => this.#finish({ error }));
    body.once("close", () => {
      if (this.#end === undefined) this.#finish({ error: cutOff() });
    });
  }

  /** What has come, at least one byte; undefined at the end. Rejects as the body does, after what came before. */
  async take(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#body.readableLength > 0 && this.#end === undefined) await setImmediate();
      const bytes = this.#body.read() as Uint8Array | null;
      if (bytes !== null) return bytes;
      if (this.#end !== undefined) {
        if ("error" in this.#end) throw this.#end.error;
        return undefined;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  cancel(): void {
    this.#body.destroy();
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake?.();
  }
}

function cutOff(): Error {
  return Object.assign(new Error("the body was cut off"), { code: "ECONNRESET" });
}
