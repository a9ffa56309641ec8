import type { Message, MessageReader, MessageWriter } from "vscode-jsonrpc";

/** One frame of JSON-RPC. */
export type { Message } from "vscode-jsonrpc";

/** Why a connection is ended, where the wire can say so (D-025, D-081, D-100). */
export type CloseReason = "done" | "going_away" | "no_handshake" | "too_slow";

/** One end of a message pipe. The connection that uses it is its owner and calls `close`. */
export interface Transport {
  readonly reader: MessageReader;
  readonly writer: MessageWriter;
  /** Ends the writing side; the peer sees the end of its input, and where the wire has a place for it the reason. */
  close(reason?: CloseReason): void;
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
