import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
} from "vscode-jsonrpc";
import "./json-rpc-runtime.ts";
import { FrameValve, skipsDispatchQueue } from "./frame-valve.ts";
import { bytesBehind, withBytes } from "./raw-frame.ts";
import type { Transport } from "./transport.ts";

/**
 * Two ends in one process. Values cross as JSON does, so no mutable state is shared; a writer waits while more than
 * 256 frames wait at the other end.
 */
export function createMemoryPair(): [Transport, Transport] {
  const left = new MemoryReader();
  const right = new MemoryReader();
  const close = () => {
    left.finish();
    right.finish();
  };
  return [createEnd(left, right, close), createEnd(right, left, close)];
}

function createEnd(own: MemoryReader, peer: MemoryReader, close: () => void): Transport {
  return { reader: own, writer: new MemoryWriter(peer, close), flow: own.flow, close };
}

class MemoryReader extends AbstractMessageReader {
  readonly flow: FrameValve;
  #callback: DataCallback | undefined;
  #held: Message[] = [];
  #room: Promise<void> | undefined;
  #releaseRoom: (() => void) | undefined;
  #finished = false;
  #closeFired = false;

  constructor() {
    super();
    this.flow = new FrameValve({
      pause: () => {
        this.#room = new Promise((resolve) => {
          this.#releaseRoom = resolve;
        });
      },
      resume: () => this.#openRoom(),
      onDrained: () => this.#closeWhenDone(),
    });
  }

  listen(callback: DataCallback): Disposable {
    this.#callback = callback;
    const held = this.#held;
    this.#held = [];
    for (const frame of held) callback(frame);
    this.#closeWhenDone();
    return { dispose: () => this.#stop() };
  }

  /** Resolves when the queue has room again. */
  async accept(text: string, raw?: Buffer): Promise<void> {
    if (this.#finished) return;
    const parsed = JSON.parse(text) as Message;
    const frame = raw === undefined ? parsed : withBytes(parsed, [raw]);
    const byteLength = text.length + (raw?.length ?? 0);
    if (!skipsDispatchQueue(frame)) this.flow.admit(frame, byteLength);
    if (this.#callback === undefined) this.#held.push(frame);
    else this.#callback(frame);
    return this.#room;
  }

  /** The close event follows the last frame. */
  finish(): void {
    this.#finished = true;
    this.#openRoom();
    this.#closeWhenDone();
  }

  override dispose(): void {
    this.#stop();
    super.dispose();
  }

  #openRoom(): void {
    const release = this.#releaseRoom;
    this.#room = undefined;
    this.#releaseRoom = undefined;
    release?.();
  }

  #closeWhenDone(): void {
    if (!this.#finished || this.#closeFired || !this.flow.drained) return;
    this.#closeFired = true;
    queueMicrotask(() => this.fireClose());
  }

  #stop(): void {
    this.#callback = undefined;
    this.#finished = true;
    this.#held = [];
    this.flow.reset();
  }
}

class MemoryWriter extends AbstractMessageWriter {
  readonly #peer: MemoryReader;
  readonly #close: () => void;

  constructor(peer: MemoryReader, close: () => void) {
    super();
    this.#peer = peer;
    this.#close = close;
  }

  write(message: Message): Promise<void> {
    const parts = bytesBehind(message);
    if (parts === undefined) return this.#peer.accept(JSON.stringify(message));
    const line = JSON.stringify({ ...message, raw: undefined });
    return this.#peer.accept(line, Buffer.concat(parts));
  }

  end(): void {
    this.#close();
  }
}
