import type { ImageSize } from "./image-size.ts";

const EXTENSION = 0x21;
const IMAGE = 0x2c;
const TRAILER = 0x3b;
const MAX_FRAMES = 256;

/** The blocks lead exactly to the trailer, with 1 to 256 frames (T 4.2). */
export function checkGif(bytes: Buffer): ImageSize | string {
  if (bytes.byteLength < 14) return "it ends early";
  const size = { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  let frames = 0;
  let at = 13 + colourTableBytes(bytes[10] ?? 0);
  while (at < bytes.byteLength) {
    const block = bytes[at];
    if (block === TRAILER) {
      if (at + 1 !== bytes.byteLength) return "something stands behind its end";
      return frames === 0 ? "it holds no image" : { ...size, frames };
    }
    if (block === EXTENSION) {
      at = endOfData(bytes, at + 2);
    } else if (block === IMAGE) {
      frames += 1;
      if (frames > MAX_FRAMES) return `it has more than ${MAX_FRAMES} frames`;
      at = endOfData(bytes, at + 11 + colourTableBytes(bytes[at + 9] ?? 0));
    } else {
      return "a block is of no known kind";
    }
  }
  return "it ends early";
}

/** Behind a row of sub-blocks. */
function endOfData(bytes: Buffer, start: number): number {
  let at = start;
  for (let length = bytes[at]; length !== undefined && length !== 0; length = bytes[at]) {
    at += 1 + length;
  }
  return at + 1;
}

function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 0x07) + 1);
}
