import { crc32, deflateSync } from "node:zlib";

/** A whole PNG of one colour, and with `padding` of about so many bytes. */
export function pngOf(width: number, height: number, padding = 0): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.alloc(1 + width * 3, 0x40);
  row[0] = 0;
  const data = deflateSync(Buffer.concat(Array<Buffer>(Math.min(height, 64)).fill(row)));
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    pngChunk("IHDR", header),
    ...(padding > 0 ? [pngChunk("tEXt", Buffer.alloc(padding, "x"))] : []),
    pngChunk("IDAT", data),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

export function pngChunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.byteLength);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** The markers of a JPEG around coded data that nobody decodes. */
export function jpegOf(width: number, height: number, coded: readonly number[] = [1, 2]): Buffer {
  const [h, w] = [height, width].map((side) => [side >> 8, side & 0xff]) as [number[], number[]];
  return Buffer.from([
    ...[0xff, 0xd8, 0xff, 0xe0, 0, 4, 0x4a, 0x46],
    ...[0xff, 0xc0, 0, 11, 8, ...h, ...w, 1, 1, 0x11, 0],
    ...[0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, ...coded],
    ...[0xff, 0xd9],
  ]);
}

export function gifOf(width: number, height: number, frames = 1): Buffer {
  const screen = Buffer.alloc(13);
  screen.write("GIF89a", "latin1");
  screen.writeUInt16LE(width, 6);
  screen.writeUInt16LE(height, 8);
  const frame = Buffer.from([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x4c, 1, 0]);
  const comment = Buffer.from([0x21, 0xfe, 2, 0x68, 0x69, 0]);
  return Buffer.concat([
    screen,
    comment,
    ...Array<Buffer>(frames).fill(frame),
    Buffer.from([0x3b]),
  ]);
}

/** A still WebP in the lossless form, with further chunks in front. */
export function webpOf(width: number, height: number, ...before: readonly Buffer[]): Buffer {
  const image = Buffer.alloc(6);
  image[0] = 0x2f;
  image.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 1);
  return riffOf("WEBP", ...before, riffChunk("VP8L", image));
}

export function riffChunk(type: string, data: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.write(type, "latin1");
  head.writeUInt32LE(data.byteLength, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.byteLength % 2)]);
}

export function riffOf(form: string, ...chunks: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from(form, "latin1"), ...chunks]);
  return riffChunk("RIFF", body);
}

/** A PDF with a classic cross-reference table. */
export function pdfOf(options: { version?: string; trailer?: string; startxref?: number } = {}) {
  const { version = "1.7", trailer = "/Size 1" } = options;
  const head = `%PDF-${version}\n1 0 obj\n<< /Type /Catalog >>\nendobj\n`;
  const table = "xref\n0 1\n0000000000 65535 f \n";
  const at = options.startxref ?? head.length;
  return Buffer.from(`${head}${table}trailer\n<< ${trailer} >>\nstartxref\n${at}\n%%EOF\n`);
}

/** The first box of an ISO media file and some of the next. */
export function isoOf(major: string, ...compatible: readonly string[]): Buffer {
  const brands = Buffer.from(`${major}\0\0\0\0${compatible.join("")}`, "latin1");
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + brands.byteLength, 0);
  head.write("ftyp", 4, "latin1");
  return Buffer.concat([head, brands, Buffer.from("\0\0\0\x08mdat", "latin1")]);
}
