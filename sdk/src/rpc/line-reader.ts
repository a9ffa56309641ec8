import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import {
  AbstractMessageReader,
  type DataCallback,
  type Disposable,
  type Message,
} from "vscode-jsonrpc/node";
import { MAX_FRAME_BYTES } from "../protocol/version.ts";
import { FrameValve, skipsDispatchQueue } from "./frame-valve.ts";

/** A line that was skipped, for a diagnostic (E-002). */
export interface BadLine {
  readonly reason: string;
  /** At most the first 200 characters. */
  readonly head: string;
}

const LF = 0x0a;
const CR = 0x0d;
/** Enough bytes for 200 characters of any width. */
const HEAD_BYTES = 800;
const HEAD_CHARACTERS = 200;

export interface LineReaderOptions {
  readonly input: Readable;
  onBadLine(bad: BadLine): void;
  readonly maxFrameBytes?: number;
}

/**
 * Reads one JSON object per line (E-001, E-011). Bad lines are reported and skipped, an over-long one without being
 * kept (E-002); reading pauses while too much waits (E-012). The close event comes after the last frame was dispatched.
 */
export class LineReader extends AbstractMessageReader {
  readonly flow: FrameValve;
  readonly #input: Readable;
  readonly #options: LineReaderOptions;
  readonly #maxFrameBytes: number;
  #callback: DataCallback | undefined;
  #parts: Buffer[] = [];
  #byteLength = 0;
  #skipping = false;
  #ended = false;
  #closeFired = false;

  constructor(options: LineReaderOptions) {
    super();
    this.#input = options.input;
    this.#options = options;
    this.#maxFrameBytes = options.maxFrameBytes ?? MAX_FRAME_BYTES;
    this.flow = new FrameValve({
      pause: () => this.#input.pause(),
      resume: () => this.#input.resume(),
      onDrained: () => this.#closeWhenDone(),
    });
  }

  listen(callback: DataCallback): Disposable {
    this.#callback = callback;
    this.#input.on("data", this.#onData);
    this.#input.once("end", this.#onEnd);
    this.#input.once("close", this.#onClose);
    this.#input.on("error", this.#onError);
    if (this.#input.destroyed || this.#input.readableEnded) queueMicrotask(this.#onClose);
    return { dispose: () => this.#stop() };
  }

  /** The input is left flowing, so a peer that still writes never blocks on us. */
  override dispose(): void {
    this.#stop();
    super.dispose();
  }

  reportBadLine(reason: string, line: Buffer): void {
    const head = line.subarray(0, HEAD_BYTES).toString("utf8").slice(0, HEAD_CHARACTERS);
    this.#options.onBadLine({ reason, head });
  }

  readonly #onData = (chunk: Buffer): void => {
    let start = 0;
    while (start < chunk.length) {
      const newline = chunk.indexOf(LF, start);
      const end = newline < 0 ? chunk.length : newline;
      if (!this.#skipping && end > start) this.#append(chunk.subarray(start, end));
      if (newline < 0) return;
      start = newline + 1;
      if (this.#skipping) this.#skipping = false;
      else this.#finishLine();
    }
  };

  #append(part: Buffer): void {
    if (this.#byteLength + part.length > this.#maxFrameBytes) {
      const head = Buffer.concat([...this.#parts, part.subarray(0, HEAD_BYTES)]);
      this.#takeLine();
      this.#skipping = true;
      this.reportBadLine(`line longer than ${this.#maxFrameBytes} bytes`, head);
      return;
    }
    this.#parts.push(part);
    this.#byteLength += part.length;
  }

  #takeLine(): Buffer {
    const [first] = this.#parts;
    const line =
      first !== undefined && this.#parts.length === 1 ? first : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#byteLength = 0;
    return line;
  }

  #finishLine(): void {
    if (this.#byteLength === 0) return;
    let line = this.#takeLine();
    if (line[line.length - 1] === CR) line = line.subarray(0, -1);
    if (line.length === 0) return;
    const frame = parseFrame(line);
    if (typeof frame === "string") this.reportBadLine(frame, line);
    else this.#deliver(frame, line);
  }

  #deliver(frame: Message, line: Buffer): void {
    if (!skipsDispatchQueue(frame)) this.flow.admit(frame, line.length);
    try {
      this.#callback?.(frame);
    } catch (error) {
      this.flow.dispatched(frame);
      this.flow.settled(frame);
      this.reportBadLine(error instanceof Error ? error.message : "unusable frame", line);
    }
  }

  readonly #onEnd = (): void => {
    if (!this.#skipping) this.#finishLine();
    this.#onClose();
  };

  readonly #onClose = (): void => {
    this.#ended = true;
    this.#closeWhenDone();
  };

  readonly #onError = (error: Error): void => this.fireError(error);

  #closeWhenDone(): void {
    if (!this.#ended || this.#closeFired || !this.flow.drained) return;
    this.#closeFired = true;
    this.fireClose();
  }

  #stop(): void {
    this.#callback = undefined;
    this.#input.off("data", this.#onData);
    this.#input.off("end", this.#onEnd);
    this.#input.off("close", this.#onClose);
    this.#parts = [];
    this.flow.reset();
    if (!this.#input.destroyed) this.#input.resume();
  }
}

/** The frame, or why there is none. */
function parseFrame(line: Buffer): Message | string {
  if (!isUtf8(line)) return "not UTF-8";
  try {
    const frame: unknown = JSON.parse(line.toString("utf8"));
    return isObject(frame) ? frame : "not a JSON object";
  } catch {
    return "not JSON";
  }
}

function isObject(value: unknown): value is Message {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
