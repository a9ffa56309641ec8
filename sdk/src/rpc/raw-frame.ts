import type { Message } from "vscode-jsonrpc";

/** A frame with bytes behind its line, in any number of parts (E-016). */
type RawFrame = Message & { readonly raw: readonly Uint8Array[] };

/** The bytes to write or that were read behind the line of `frame`. */
export function bytesBehind(frame: Message): readonly Uint8Array[] | undefined {
  return isRaw(frame) ? frame.raw : undefined;
}

/** The frame with its bytes in the place of their number. */
export function withBytes<F extends Message>(
  frame: F,
  raw: readonly Uint8Array[],
): F & { raw: readonly Uint8Array[] } {
  return Object.assign(frame, { raw });
}

export function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0);
}

function isRaw(frame: Message): frame is RawFrame {
  return "raw" in frame && Array.isArray(frame.raw);
}
