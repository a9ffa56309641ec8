import { crc32 } from "node:zlib";
import type { ImageSize } from "./image-size.ts";

/** Bit depths of each colour type. */
const DEPTHS: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

/** Every chunk in bounds with its checksum right, `IHDR` first, some `IDAT`, nothing behind `IEND` (T 4.2). */
export function checkPng(bytes: Buffer): ImageSize | string {
  let size: ImageSize | undefined;
  let hasData = false;
  for (let at = 8; at + 12 <= bytes.byteLength; ) {
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString("latin1", at + 4, at + 8);
    const end = at + 12 + length;
    if (end > bytes.byteLength) return "a chunk reaches past the end";
    if (crc32(bytes.subarray(at + 4, end - 4)) !== bytes.readUInt32BE(end - 4)) {
      return "the checksum of a chunk is wrong";
    }
    if (size === undefined) {
      if (type !== "IHDR" || length !== 13) return "its first chunk is no header";
      size = readHeader(bytes.subarray(at + 8, end - 4));
      if (size === undefined) return "its header is invalid";
    } else if (type === "IHDR") {
      return "it has a second header";
    } else if (type === "IDAT") {
      hasData = true;
    } else if (type === "IEND") {
      if (length !== 0 || end !== bytes.byteLength) return "something stands behind its end";
      return hasData ? size : "it holds no image data";
    }
    at = end;
  }
  return "it ends early";
}

function readHeader(header: Buffer): ImageSize | undefined {
  const [depth = 0, colour = 0, compression, filter, interlace = 2] = header.subarray(8);
  const isSane =
    DEPTHS[colour]?.includes(depth) === true && compression === 0 && filter === 0 && interlace < 2;
  return isSane ? { width: header.readUInt32BE(0), height: header.readUInt32BE(4) } : undefined;
}
