import { type ConnectOpts, Socket, type SocketConstructorOpts } from "node:net";
import type { Readable } from "node:stream";
import { ReadBuffer } from "./read-buffer.ts";

/** Held and not sent yet; beyond it a pipe without a buffer of its own is not read. */
const HOLD_BYTES = 384 * 1024;

/** What comes out of one pipe of a command, held until it is taken. */
export class PipeReader {
  /** Called whenever more has come. */
  onData: () => void = () => undefined;
  /** Resolves when nothing more can come. */
  readonly end: Promise<void>;
  readonly #stream: Readable;
  readonly #buffer: ReadBuffer | undefined;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #takenBytes = 0;
  #receivedBytes = 0;
  #ended = false;

  private constructor(stream: Readable, buffer: ReadBuffer | undefined) {
    this.#stream = stream;
    this.#buffer = buffer;
    // A broken pipe is an end like any other; `close` follows.
    stream.on("error", () => undefined);
    this.end = new Promise((resolve) => {
      stream.once("close", () => {
        this.#ended = true;
        resolve();
      });
    });
  }

  /** Reads the descriptor of a pipe, which is this object's from now on. */
  static ofDescriptor(fd: number): PipeReader {
    const buffer = new ReadBuffer();
    let reader: PipeReader | undefined;
    const options: SocketConstructorOpts & ConnectOpts = {
      fd,
      readable: true,
      writable: false,
      onread: {
        buffer: () => buffer.region,
        callback: (byteLength) => {
          const piece = buffer.commit(byteLength);
          if (reader !== undefined) reader.#hold(piece);
          return buffer.hasRoom;
        },
      },
    };
    const stream = new Socket(options);
    reader = new PipeReader(stream, buffer);
    stream.resume();
    return reader;
  }

  static ofStream(stream: Readable): PipeReader {
    const reader = new PipeReader(stream, undefined);
    stream.on("data", (bytes: Uint8Array) => {
      reader.#hold(bytes);
      if (reader.#heldBytes >= HOLD_BYTES) stream.pause();
    });
    return reader;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Hands over what is held; it stays as it is until it is released. */
  take(): readonly Uint8Array[] {
    const held = this.#held;
    this.#takenBytes += this.#heldBytes;
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }

  /** What was taken is needed no more; reading goes on. */
  release(): void {
    this.#buffer?.release(this.#takenBytes);
    this.#takenBytes = 0;
    if (this.#buffer?.hasRoom !== false) this.#stream.resume();
  }

  /** Stops reading. */
  close(): void {
    this.#stream.destroy();
  }

  #hold(bytes: Uint8Array): void {
    this.#receivedBytes += bytes.byteLength;
    this.#heldBytes += bytes.byteLength;
    const joined = joinAdjacent(this.#held.at(-1), bytes);
    if (joined !== undefined) this.#held.pop();
    this.#held.push(joined ?? bytes);
    this.onData();
  }
}

/** Both as one, where the second stands behind the first in memory: many small reads are one piece then. */
function joinAdjacent(first: Uint8Array | undefined, second: Uint8Array): Uint8Array | undefined {
  if (first === undefined || first.buffer !== second.buffer) return undefined;
  if (first.byteOffset + first.byteLength !== second.byteOffset) return undefined;
  return Buffer.from(first.buffer, first.byteOffset, first.byteLength + second.byteLength);
}
