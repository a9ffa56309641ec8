import type { Writable } from "node:stream";
import { AbstractMessageWriter, type Message } from "vscode-jsonrpc";
import { MAX_FRAME_BYTES } from "../protocol/version.ts";
import { encodeFrame, overCap } from "./encode-frame.ts";
import { bytesBehind, lengthOf } from "./raw-frame.ts";

export interface LineWriterOptions {
  readonly output: Writable;
  readonly maxFrameBytes?: number;
}

function encodeLine(text: string, byteLength: number): Buffer {
  const line = Buffer.allocUnsafeSlow(byteLength + 1);
  line.write(text, "utf8");
  line[byteLength] = 0x0a;
  return line;
}

/**
 * Writes one JSON object per line (E-001). `write` resolves when the stream accepted the bytes or drained (E-011);
 * a frame over the cap rejects with `resource_limit`, and a response over it is replaced by that error (E-002).
 */
export class LineWriter extends AbstractMessageWriter {
  readonly #output: Writable;
  readonly #maxFrameBytes: number;
  #drain: Promise<void> | undefined;
  #releaseDrain: (() => void) | undefined;
  #closed = false;

  constructor(options: LineWriterOptions) {
    super();
    this.#output = options.output;
    this.#maxFrameBytes = options.maxFrameBytes ?? MAX_FRAME_BYTES;
    this.#output.on("drain", this.#onDrain);
    this.#output.once("close", this.#onClose);
    this.#output.on("error", this.#onError);
  }

  /** Until the stream has drained; undefined while it takes more. */
  get room(): Promise<void> | undefined {
    return this.#drain;
  }

  /** Frames for a closed stream are dropped: the reader's close event tells the owner. */
  async write(message: Message): Promise<void> {
    const parts = bytesBehind(message);
    const line = this.#encode(parts === undefined ? message : this.#announce(message, parts));
    if (this.#closed || this.#output.writableEnded) return;
    if (parts !== undefined) return this.#writeAll([Buffer.from(line), ...parts]);
    if (this.#output.write(line)) return;
    // One promise for all waiters: a drain listener per frame would be quadratic.
    this.#drain ??= new Promise((resolve) => {
      this.#releaseDrain = resolve;
    });
    return this.#drain;
  }

  end(): void {
    if (!this.#closed) this.#output.end();
  }

  /** In one system call, where the stream can. Resolves when the stream needs the parts no more. */
  #writeAll(parts: readonly Uint8Array[]): Promise<void> {
    return new Promise((resolve) => {
      this.#output.cork();
      parts.forEach((part, index) => {
        if (index < parts.length - 1) this.#output.write(part);
        else this.#output.write(part, () => resolve());
      });
      this.#output.uncork();
    });
  }

  /** The frame with the number of its raw bytes in their place (E-016). */
  #announce(message: Message, parts: readonly Uint8Array[]): Message {
    const raw = lengthOf(parts);
    if (raw <= this.#maxFrameBytes) return Object.assign({ ...message }, { raw });
    throw overCap(this.#maxFrameBytes);
  }

  /** A short frame goes to the stream as a string; it would take much longer than we do to encode a long one. */
  #encode(message: Message): string | Buffer {
    const { text, byteLength } = encodeFrame(message, this.#maxFrameBytes);
    return byteLength === undefined ? `${text}\n` : encodeLine(text, byteLength);
  }

  readonly #onDrain = (): void => {
    const release = this.#releaseDrain;
    this.#drain = undefined;
    this.#releaseDrain = undefined;
    release?.();
  };

  readonly #onClose = (): void => {
    this.#closed = true;
    this.#onDrain();
    this.fireClose();
  };

  readonly #onError = (error: Error): void => {
    this.fireError(error);
    this.#onClose();
  };
}
