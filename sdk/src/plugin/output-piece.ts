import type { ProgressDelta } from "./tool-invocation.ts";

/** Output of one stream, or of the only one, as an author gave it. */
export interface OutputPiece {
  readonly stream?: string | undefined;
  readonly data: string | Uint8Array;
}

export function piecesOf(output: ProgressDelta["output"]): OutputPiece[] {
  if (output === undefined) return [];
  if (typeof output === "string" || output instanceof Uint8Array) return [{ data: output }];
  return output.map((chunk) => ({
    stream: chunk.stream,
    data: "text" in chunk ? chunk.text : chunk.bytes,
  }));
}
