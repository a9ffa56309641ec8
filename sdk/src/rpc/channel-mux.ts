import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
} from "vscode-jsonrpc";
import type { LineReader } from "./line-reader.ts";
import type { LineWriter } from "./line-writer.ts";
import type { FrameFlow, Transport } from "./transport.ts";

/**
 * Several plugins on one pipe: every frame carries the plugin id in `ch` (E-014). A frame without a known channel is a
 * bad line; one for a channel that was closed is dropped, because it may have been under way.
 */
export class ChannelMux {
  readonly #reader: LineReader;
  readonly #writer: LineWriter;
  readonly #channels = new Map<string, { reader: ChannelReader; flow: ChannelFlow }>();
  readonly #retired = new Set<string>();
  #closed = false;

  constructor(reader: LineReader, writer: LineWriter) {
    this.#reader = reader;
    this.#writer = writer;
    reader.onClose(() => {
      this.#closed = true;
      for (const { reader } of this.#channels.values()) reader.finish();
    });
    reader.listen((frame) => this.#route(frame));
  }

  /** Opens a channel; one of the same name that is still open is an error of the caller. */
  channel(id: string): Transport {
    if (this.#channels.has(id)) throw new Error(`channel ${id} is open already`);
    const reader = new ChannelReader();
    const writer = new ChannelWriter(id, this.#writer);
    const flow = new ChannelFlow(this.#reader.flow);
    this.#retired.delete(id);
    const channel = { reader, flow };
    this.#channels.set(id, channel);
    if (this.#closed) queueMicrotask(() => reader.finish());
    return {
      reader,
      writer,
      flow,
      room: () => this.#writer.room,
      close: () => {
        if (this.#channels.get(id) !== channel) return;
        this.#channels.delete(id);
        this.#retired.add(id);
        flow.dropAll();
        writer.close();
        reader.finish();
      },
    };
  }

  #route(frame: Message): void {
    const id: unknown = "ch" in frame ? frame.ch : undefined;
    if (typeof id !== "string") throw new Error("frame without ch");
    const channel = this.#channels.get(id);
    if (channel !== undefined) {
      Reflect.deleteProperty(frame, "ch");
      channel.flow.admitted(frame);
      channel.reader.deliver(frame);
      return;
    }
    if (!this.#retired.has(id)) throw new Error("frame for an unknown channel");
    drop(this.#reader.flow, frame);
  }
}

/** Knows which frames of the pipe belong to one channel, so that closing it leaves none counted. */
class ChannelFlow implements FrameFlow {
  readonly #pipe: FrameFlow;
  readonly #outstanding = new Set<Message>();

  constructor(pipe: FrameFlow) {
    this.#pipe = pipe;
  }

  admitted(frame: Message): void {
    this.#outstanding.add(frame);
  }

  dispatched(frame: Message): void {
    this.#pipe.dispatched(frame);
  }

  settled(frame: Message): void {
    this.#outstanding.delete(frame);
    this.#pipe.settled(frame);
  }

  dropAll(): void {
    for (const frame of this.#outstanding) drop(this.#pipe, frame);
    this.#outstanding.clear();
  }
}

function drop(flow: FrameFlow, frame: Message): void {
  flow.dispatched(frame);
  flow.settled(frame);
}

class ChannelReader extends AbstractMessageReader {
  #callback: DataCallback | undefined;
  #held: Message[] = [];

  listen(callback: DataCallback): Disposable {
    this.#callback = callback;
    const held = this.#held;
    this.#held = [];
    for (const frame of held) callback(frame);
    return {
      dispose: () => {
        this.#callback = undefined;
      },
    };
  }

  /** Frames that come before `listen` wait; they count as waiting for the pipe's valve. */
  deliver(frame: Message): void {
    if (this.#callback === undefined) this.#held.push(frame);
    else this.#callback(frame);
  }

  finish(): void {
    this.#held = [];
    this.fireClose();
  }
}

class ChannelWriter extends AbstractMessageWriter {
  readonly #id: string;
  readonly #writer: LineWriter;
  #closed = false;

  constructor(id: string, writer: LineWriter) {
    super();
    this.#id = id;
    this.#writer = writer;
  }

  async write(message: Message): Promise<void> {
    if (this.#closed) return;
    const frame: Message & { ch: string } = { ch: this.#id, ...message };
    return this.#writer.write(frame);
  }

  close(): void {
    this.#closed = true;
  }

  /** The pipe is shared; its owner ends it. */
  end(): void {}
}
