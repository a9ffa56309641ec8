import type { ImageSize } from "./image-size.ts";

const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;

/** The markers lead exactly to the end of the file, with one frame header before the first scan (T 4.2). */
export function checkJpeg(bytes: Buffer): ImageSize | string {
  let size: ImageSize | undefined;
  let at = 2;
  while (at < bytes.byteLength) {
    if (bytes[at] !== 0xff) return "a marker is missing";
    // Any number of FF may stand before a marker.
    while (bytes[at] === 0xff) at += 1;
    const marker = bytes[at] ?? 0;
    at += 1;
    if (marker === END_OF_IMAGE) {
      if (size === undefined) return "it holds no image";
      return at === bytes.byteLength ? size : "something stands behind its end";
    }
    if (marker === 0 || marker === 0xd8) return "a marker is out of place";
    if (marker === 0x01 || isRestart(marker)) continue;
    if (at + 2 > bytes.byteLength) break;
    const length = bytes.readUInt16BE(at);
    if (length < 2 || at + length > bytes.byteLength) return "a segment reaches past the end";
    if (isFrameHeader(marker)) {
      if (size !== undefined) return "it has a second frame header";
      if (length < 8) return "its frame header is too short";
      size = { width: bytes.readUInt16BE(at + 5), height: bytes.readUInt16BE(at + 3) };
    }
    at += length;
    if (marker !== START_OF_SCAN) continue;
    if (size === undefined) return "a scan comes before its frame header";
    at = endOfScan(bytes, at);
  }
  return "it ends early";
}

/** Where the next marker stands that is not part of the coded data. */
function endOfScan(bytes: Buffer, start: number): number {
  const { byteLength } = bytes;
  for (let at = start; at < byteLength; at += 1) {
    if (bytes[at] !== 0xff) continue;
    const next = bytes[at + 1] ?? 0;
    if (next !== 0 && next !== 0xff && !isRestart(next)) return at;
  }
  return byteLength;
}

function isRestart(marker: number): boolean {
  return marker >= 0xd0 && marker <= 0xd7;
}

/** Tables and reserved codes lie among the frame headers. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}
