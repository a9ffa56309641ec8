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
  /** Of a stream without a buffer of its own. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
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
          buffer.commit(byteLength);
          if (reader !== undefined) reader.#note(byteLength);
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
      reader.#held.push(bytes);
      reader.#note(bytes.byteLength);
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
    const held = this.#buffer?.take() ?? this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }

  /** What was taken is needed no more; reading goes on. */
  release(): void {
    this.#buffer?.release();
    if (this.#buffer?.hasRoom !== false) this.#stream.resume();
  }

  /** Stops reading. */
  close(): void {
    this.#stream.destroy();
  }

  #note(byteLength: number): void {
    this.#receivedBytes += byteLength;
    this.#heldBytes += byteLength;
    this.onData();
  }
}
