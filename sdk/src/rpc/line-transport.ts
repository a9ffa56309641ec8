import type { Readable, Writable } from "node:stream";
import "./json-rpc-runtime.ts";
import { ChannelMux } from "./channel-mux.ts";
import { type BadLine, LineReader } from "./line-reader.ts";
import { LineWriter } from "./line-writer.ts";
import type { Transport } from "./transport.ts";

export interface LineTransportOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Called for every skipped line; counting them and acting on the count is the owner's business (E-002). */
  onBadLine(bad: BadLine): void;
  /** Bytes of one line without its LF; default 4 MiB. */
  readonly maxFrameBytes?: number;
  /** Whether the peer was told that raw bytes may follow a line (E-016); default false. */
  readonly raw?: boolean;
}

export interface LineTransport extends Transport {
  /** Shares the pipe by `ch` (E-014); the transport's own reader must not be used beside channels. */
  channel(name: string): Transport;
}

/** Newline-delimited JSON over a pair of byte streams (E-001, E-002, E-011, E-012). */
export function createLineTransport(options: LineTransportOptions): LineTransport {
  const reader = new LineReader(options);
  const writer = new LineWriter(options);
  let mux: ChannelMux | undefined;
  return {
    reader,
    writer,
    flow: reader.flow,
    room: () => writer.room,
    close: () => writer.end(),
    channel: (name) => {
      mux ??= new ChannelMux(reader, writer);
      return mux.channel(name);
    },
  };
}
