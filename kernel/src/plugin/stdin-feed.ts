import { CookieError } from "@cookie-agent/sdk/protocol";
import type { PluginLimits } from "./plugin-limits.ts";

/** Standard input of one call: base64 chunks in order, a bounded number under way, nothing after the end (E-106). */
export class StdinFeed {
  readonly #limits: Pick<PluginLimits, "stdinChunkBytes" | "pendingStdinWrites">;
  #tail: Promise<boolean> = Promise.resolve(true);
  #pending = 0;
  #open = true;

  constructor(limits: Pick<PluginLimits, "stdinChunkBytes" | "pendingStdinWrites">) {
    this.#limits = limits;
  }

  close(): void {
    this.#open = false;
  }

  /** False once the plugin, the end of input or the end of the call closed it. */
  async write(
    data: Uint8Array | null,
    eof: boolean,
    send: (base64: string | null, eof: boolean) => Promise<boolean>,
  ): Promise<boolean> {
    if (!this.#open) return false;
    if (this.#pending >= this.#limits.pendingStdinWrites) {
      throw new CookieError("busy", "too much input waits for this call");
    }
    if (eof) this.#open = false;
    this.#pending += 1;
    const sent = this.#tail.then((accepts) => accepts && this.#sendAll(data, eof, send));
    this.#tail = sent.catch(() => false);
    try {
      const accepted = await sent;
      if (!accepted) this.#open = false;
      return accepted;
    } finally {
      this.#pending -= 1;
    }
  }

  async #sendAll(
    data: Uint8Array | null,
    eof: boolean,
    send: (base64: string | null, eof: boolean) => Promise<boolean>,
  ): Promise<boolean> {
    if (data === null || data.byteLength === 0) return send(null, eof);
    const step = this.#limits.stdinChunkBytes;
    for (let start = 0; start < data.byteLength; start += step) {
      const chunk = Buffer.from(data.subarray(start, start + step)).toString("base64");
      const last = start + step >= data.byteLength;
      if (!(await send(chunk, eof && last))) return false;
    }
    return true;
  }
}
