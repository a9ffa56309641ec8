import type { ToolCallId } from "@cookie-agent/sdk/protocol";

/** Text of one stream at its byte offset. */
export interface OutputChunk {
  readonly byteOffset: number;
  readonly data: Uint8Array;
}

interface StreamPosition {
  readonly toolCallId: ToolCallId;
  readonly stream: string;
}

/** What a subscriber of live output gets, per stream in this order: a snapshot, then deltas, gaps between (D-072). */
export type OutputNotice =
  | (StreamPosition & {
      readonly kind: "snapshot";
      readonly startOffset: number;
      readonly endOffset: number;
      readonly chunks: readonly OutputChunk[];
    })
  | (StreamPosition & OutputChunk & { readonly kind: "delta" })
  | (StreamPosition & { readonly kind: "gap"; readonly nextOffset: number });
