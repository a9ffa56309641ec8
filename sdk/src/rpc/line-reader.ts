import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import {
  AbstractMessageReader,
  type DataCallback,
  type Disposable,
  type Message,
} from "vscode-jsonrpc";
import { MAX_FRAME_BYTES } from "../protocol/version.ts";
import { FrameValve, skipsDispatchQueue } from "./frame-valve.ts";
import { announcesBytes, readAnnouncement } from "./raw-announcement.ts";
import { lengthOf, withBytes } from "./raw-frame.ts";
import { RawIntake } from "./raw-intake.ts";

/** A line that was skipped, for a diagnostic (E-002). */
export interface BadLine {
  readonly reason: string;
  /** At most the first 200 characters. */
  readonly head: string;
  /** Where the next line begins cannot be known: nothing is read any more, the pipe has to end (E-016). */
  readonly final: boolean;
}

const LF = 0x0a;
const CR = 0x0d;
/** Enough bytes for 200 characters of any width. */
const HEAD_BYTES = 800;
const HEAD_CHARACTERS = 200;
/** A larger buffer is not kept for the next line. */
const KEPT_BYTES = 256 * 1024;
const EMPTY = Buffer.alloc(0);

export interface LineReaderOptions {
  readonly input: Readable;
  onBadLine(bad: BadLine): void;
  readonly maxFrameBytes?: number;
  /** Whether the peer was told that raw bytes may follow a line (E-016); default false. */
  readonly raw?: boolean;
}

/** Bytes behind a line that is read already. */
interface BytesBehind {
  readonly frame: Message;
  readonly line: Buffer;
  readonly intake: RawIntake;
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
  /** The unfinished line: its first `byteLength` bytes are in use. */
  #pending: Buffer = EMPTY;
  #byteLength = 0;
  #skipping = false;
  #behind: BytesBehind | undefined;
  /** Raw bytes that nobody wants, still to come. */
  #unwantedBytes = 0;
  #lost = false;
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

  #reportBadLine(reason: string, line: Buffer, final = false): void {
    const head = line.subarray(0, HEAD_BYTES).toString("utf8").slice(0, HEAD_CHARACTERS);
    this.#options.onBadLine({ reason, head, final });
  }

  readonly #onData = (chunk: Buffer): void => {
    let start = 0;
    while (start < chunk.length && !this.#lost) {
      const rest = chunk.subarray(start);
      start +=
        this.#behind === undefined ? this.#takeLine(rest) : this.#takeBytes(rest, this.#behind);
    }
  };

  /** Takes raw bytes or what belongs to one line, and tells how much that was. */
  #takeLine(chunk: Buffer): number {
    if (this.#unwantedBytes > 0) {
      const unwanted = Math.min(this.#unwantedBytes, chunk.length);
      this.#unwantedBytes -= unwanted;
      return unwanted;
    }
    const newline = chunk.indexOf(LF);
    const part = newline < 0 ? chunk : chunk.subarray(0, newline);
    if (!this.#skipping && this.#byteLength + part.length > this.#maxFrameBytes) {
      this.#skipLine(part);
    }
    if (newline < 0) {
      if (!this.#skipping) this.#keep(part);
      return chunk.length;
    }
    if (this.#skipping) this.#skipping = false;
    else this.#finishLine(part);
    return newline + 1;
  }

  #takeBytes(chunk: Buffer, { frame, line, intake }: BytesBehind): number {
    const taken = intake.take(chunk);
    if (intake.missingBytes === 0) this.#finishBytes({ frame, line, intake });
    return taken;
  }

  #finishBytes({ frame, line, intake }: BytesBehind): void {
    this.#behind = undefined;
    const { parts } = intake;
    this.#deliver(withBytes(frame, parts), line, lengthOf(parts));
  }

  #skipLine(part: Buffer): void {
    const begun = this.#pending.subarray(0, Math.min(this.#byteLength, HEAD_BYTES));
    this.#byteLength = 0;
    this.#pending = EMPTY;
    this.#skipping = true;
    const head = Buffer.concat([begun, part.subarray(0, HEAD_BYTES)]);
    this.#reportBadLine(`line longer than ${this.#maxFrameBytes} bytes`, head);
  }

  /** One growing buffer instead of a list: a line may come byte by byte. */
  #keep(part: Buffer): void {
    const needed = this.#byteLength + part.length;
    if (needed > this.#pending.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#pending.length, 4096));
      this.#pending.copy(grown, 0, 0, this.#byteLength);
      this.#pending = grown;
    }
    part.copy(this.#pending, this.#byteLength);
    this.#byteLength = needed;
  }

  #finishLine(part: Buffer): void {
    let line = part;
    if (this.#byteLength > 0) {
      this.#keep(part);
      line = this.#pending.subarray(0, this.#byteLength);
      this.#byteLength = 0;
      if (this.#pending.length > KEPT_BYTES) this.#pending = EMPTY;
    }
    if (line[line.length - 1] === CR) line = line.subarray(0, -1);
    if (line.length === 0) return;
    const frame = parseFrame(line);
    if (typeof frame === "string") this.#reportBadLine(frame, line);
    else if (announcesBytes(frame)) this.#expectBytes(frame, line);
    else this.#deliver(frame, line);
  }

  /** What follows must never be read as lines: it is what some command printed. */
  #expectBytes(frame: Message, line: Buffer): void {
    const announced = readAnnouncement(frame, this.#options.raw === true, this.#maxFrameBytes);
    if ("lost" in announced) {
      this.#lose(announced.lost, line);
    } else if (announced.problem !== undefined) {
      this.#unwantedBytes = announced.byteLength;
      this.#reportBadLine(announced.problem, line);
    } else {
      this.#behind = { frame, line, intake: new RawIntake(announced.byteLength) };
      if (announced.byteLength === 0) this.#finishBytes(this.#behind);
    }
  }

  #lose(reason: string, line: Buffer): void {
    this.#lost = true;
    this.#pending = EMPTY;
    this.#reportBadLine(reason, line, true);
    this.#onClose();
  }

  #deliver(frame: Message, line: Buffer, rawBytes = 0): void {
    if (!skipsDispatchQueue(frame)) this.flow.admit(frame, line.length + rawBytes);
    try {
      this.#callback?.(frame);
    } catch (error) {
      this.flow.dispatched(frame);
      this.flow.settled(frame);
      this.#reportBadLine(error instanceof Error ? error.message : "unusable frame", line);
    }
  }

  readonly #onEnd = (): void => {
    if (this.#behind === undefined && !this.#skipping && !this.#lost) this.#finishLine(EMPTY);
    if (this.#behind !== undefined) {
      const { intake, line } = this.#behind;
      this.#reportBadLine(`the pipe ended ${intake.missingBytes} raw bytes early`, line);
      this.#behind = undefined;
    }
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
    this.#pending = EMPTY;
    this.#byteLength = 0;
    this.#behind = undefined;
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
