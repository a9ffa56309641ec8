import type { ToolProgress } from "@cookie-agent/sdk/protocol";

/** What one or several deltas of a running call brought. */
export interface ProgressNews {
  readonly output: readonly OutputPiece[];
  readonly message?: string | undefined;
  readonly display?: string | undefined;
}

/** Output of one stream, or of the only one: text, or parts of what is meant as UTF-8 and may end in a character. */
export interface OutputPiece {
  readonly stream: string | null;
  readonly data: string | readonly Uint8Array[];
}

/** Hands out the raw bytes of a delta to its chunks, in their order (E-016). */
export function piecesOf({ output = [] }: ToolProgress, raw: readonly Uint8Array[]): OutputPiece[] {
  const parts = [...raw];
  return output.map(({ stream = null, text, byte_length: byteLength = 0 }) => ({
    stream,
    data: text ?? takeBytes(parts, byteLength),
  }));
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
