import type { Message, MessageReader, MessageWriter } from "vscode-jsonrpc";

/** One frame of JSON-RPC. */
export type { Message } from "vscode-jsonrpc";

/** One end of a message pipe. The connection that uses it is its owner and calls `close`. */
export interface Transport {
  readonly reader: MessageReader;
  readonly writer: MessageWriter;
  /** Ends the writing side; the peer sees the end of its input. */
  close(): void;
  /** Absent where nothing has to be throttled. */
  readonly flow?: FrameFlow;
  /** While the peer does not take what was written to it: resolves when it has, or never will. */
  room?(): Promise<void> | undefined;
}

/** How a connection tells the transport what became of a frame, so that reading can be throttled (E-012). */
export interface FrameFlow {
  /** The frame left the dispatch queue. */
  dispatched(frame: Message): void;
  /** What the frame set off has ended, so it no longer counts. */
  settled(frame: Message): void;
}
