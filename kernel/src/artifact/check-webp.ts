import type { ImageSize } from "./image-size.ts";

const ANIMATION_FLAG = 0x02;

/** The sizes add up to the file, with exactly one still image in it (T 4.2). */
export function checkWebp(bytes: Buffer): ImageSize | string {
  if (bytes.readUInt32LE(4) + 8 !== bytes.byteLength) return "its size is not that of the file";
  let image: ImageSize | undefined;
  let canvas: ImageSize | undefined;
  let at = 12;
  while (at + 8 <= bytes.byteLength) {
    const type = bytes.toString("latin1", at, at + 4);
    const length = bytes.readUInt32LE(at + 4);
    const start = at + 8;
    const end = start + length + (length % 2);
    if (end > bytes.byteLength) return "a chunk reaches past the end";
    const data = bytes.subarray(start, start + length);
    if (type === "ANIM" || type === "ANMF") return "it is animated";
    if (type === "VP8X") {
      if (length < 10) return "its header is too short";
      if (((data[0] ?? 0) & ANIMATION_FLAG) !== 0) return "it is animated";
      canvas = { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 };
    }
    if (type === "VP8 " || type === "VP8L") {
      if (image !== undefined) return "it holds more than one image";
      image = type === "VP8 " ? readLossy(data) : readLossless(data);
      if (image === undefined) return "its image header is invalid";
    }
    at = end;
  }
  if (at !== bytes.byteLength) return "it ends early";
  if (image === undefined) return "it holds no image";
  return canvas ?? image;
}

function readLossy(data: Buffer): ImageSize | undefined {
  if (data.byteLength < 10 || data.toString("hex", 3, 6) !== "9d012a") return undefined;
  return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff };
}

function readLossless(data: Buffer): ImageSize | undefined {
  if (data.byteLength < 5 || data[0] !== 0x2f) return undefined;
  const bits = data.readUInt32LE(1);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}
