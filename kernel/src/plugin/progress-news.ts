import type { ToolProgress } from "@cookie-agent/sdk/protocol";

/** What one or several deltas of a running call brought. */
export interface ProgressNews {
  readonly output: readonly OutputPiece[];
  readonly message?: string | undefined;
  readonly display?: string | undefined;
}

/** Output of one stream, or of the only one; bytes may be no UTF-8 and may end inside a character. */
export interface OutputPiece {
  readonly stream: string | null;
  readonly data: string | Uint8Array;
}

/** Hands out the raw bytes of a delta to its chunks, in their order (E-016); a chunk may be several pieces. */
export function piecesOf({ output = [] }: ToolProgress, raw: readonly Uint8Array[]): OutputPiece[] {
  const parts = [...raw];
  return output.flatMap<OutputPiece>(({ stream = null, text, byte_length: byteLength = 0 }) =>
    text === undefined
      ? takeBytes(parts, byteLength).map((data) => ({ stream, data }))
      : [{ stream, data: text }],
  );
}

/** Takes the first `byteLength` bytes out of `parts`. */
function takeBytes(parts: Uint8Array[], byteLength: number): Uint8Array[] {
  const taken: Uint8Array[] = [];
  for (let missing = byteLength; missing > 0; ) {
    const part = parts.shift();
    if (part === undefined) break;
    const wanted = part.subarray(0, missing);
    taken.push(wanted);
    missing -= wanted.byteLength;
    if (wanted.byteLength < part.byteLength) parts.unshift(part.subarray(wanted.byteLength));
  }
  return taken;
}
