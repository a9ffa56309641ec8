import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkImage } from "../../../../kernel/src/artifact/check-image.ts";
import { checkPdf } from "../../../../kernel/src/artifact/check-pdf.ts";
import {
  gifOf,
  jpegOf,
  pdfOf,
  pngChunk,
  pngOf,
  riffChunk,
  riffOf,
  webpOf,
} from "../../../support/media-files.ts";

const WHOLE = {
  "image/png": pngOf(8, 8),
  "image/jpeg": jpegOf(8, 8, [1, 0xff, 0, 2, 0xff, 0xd0, 3]),
  "image/gif": gifOf(8, 8, 2),
  "image/webp": webpOf(8, 8),
} as const;
const kinds = Object.entries(WHOLE);

describe("an image", () => {
  test.for(kinds)("[T-152] %s that is whole passes", ([mime, bytes]) => {
    expect(checkImage(bytes, mime)).toBeUndefined();
  });

  test.for(kinds)("[T-152] %s cut anywhere is malformed", ([mime, bytes]) => {
    for (let length = bytes.byteLength - 1; length >= 13; length -= 1) {
      expect(checkImage(bytes.subarray(0, length), mime), `${length} bytes`).toEqual(
        expect.any(String),
      );
    }
  });

  test.for(kinds)("[T-152] %s with something behind it is malformed", ([mime, bytes]) => {
    expect(checkImage(Buffer.concat([bytes, Buffer.from("x")]), mime)).toEqual(expect.any(String));
  });

  test.for(kinds)("%s with any byte changed is judged without an exception", ([mime, bytes]) => {
    fc.assert(
      fc.property(fc.nat(bytes.byteLength - 13), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(bytes);
        changed[at + 12] = byte;
        checkImage(changed, mime);
      }),
    );
  });

  test("[T-152] a PNG needs its header first, right checksums and some data", () => {
    const signature = pngOf(1, 1).subarray(0, 8);
    const header = pngOf(1, 1).subarray(8, 33);
    const end = pngChunk("IEND", Buffer.alloc(0));
    const broken = Buffer.from(pngOf(4, 4));
    broken[20] = 9;
    expect(checkImage(broken, "image/png")).toContain("checksum");
    expect(checkImage(Buffer.concat([signature, end]), "image/png")).toContain("header");
    expect(checkImage(Buffer.concat([signature, header, end]), "image/png")).toContain("data");
    expect(checkImage(Buffer.concat([signature, header, header, end]), "image/png")).toContain(
      "second header",
    );
  });

  test("[T-152] a JPEG needs one frame header, before its first scan", () => {
    const whole = jpegOf(8, 8);
    const frame = whole.subarray(8, 21);
    const twice = Buffer.concat([whole.subarray(0, 21), frame, whole.subarray(21)]);
    const never = Buffer.concat([whole.subarray(0, 8), whole.subarray(21)]);
    expect(checkImage(twice, "image/jpeg")).toContain("second frame header");
    expect(checkImage(never, "image/jpeg")).toContain("before its frame header");
  });

  test("[T-152] an animated WebP is refused, by its flag and by its frames", () => {
    const header = (flags: number) =>
      riffChunk("VP8X", Buffer.from([flags, 0, 0, 0, 7, 0, 0, 7, 0, 0]));
    expect(checkImage(webpOf(8, 8, header(0)), "image/webp")).toBeUndefined();
    expect(checkImage(webpOf(8, 8, header(2)), "image/webp")).toContain("animated");
    const frame = riffChunk("ANMF", Buffer.alloc(16));
    expect(checkImage(webpOf(8, 8, frame), "image/webp")).toContain("animated");
    const second = webpOf(8, 8).subarray(12);
    expect(checkImage(webpOf(8, 8, second), "image/webp")).toContain("more than one");
    expect(checkImage(riffOf("WEBP"), "image/webp")).toContain("no image");
  });

  test.for([
    ["a side of 16384", pngOf(16_384, 1), "image/png", true],
    ["a side of 16385", pngOf(16_385, 1), "image/png", false],
    ["an area of 4096 x 4096", jpegOf(4096, 4096), "image/jpeg", true],
    ["an area of 4096 x 4097", jpegOf(4096, 4097), "image/jpeg", false],
    ["no width", jpegOf(0, 8), "image/jpeg", false],
    ["256 frames", gifOf(256, 256, 256), "image/gif", true],
    ["257 frames", gifOf(8, 8, 257), "image/gif", false],
    ["no frame", gifOf(8, 8, 0), "image/gif", false],
    ["frames of more than the area together", gifOf(256, 257, 256), "image/gif", false],
    ["a WebP side of 16383", webpOf(16_383, 1), "image/webp", true],
  ] as const)("[T-153] %s", ([, bytes, mime, fits]) => {
    expect(checkImage(bytes, mime) === undefined).toBe(fits);
  });
});

describe("a PDF", () => {
  const stream = (dictionary: string) => {
    const head = "%PDF-1.5\n";
    const body = `7 0 obj\n<< ${dictionary} >>\nstream\nxx\nendstream\nendobj\n`;
    return Buffer.from(`${head}${body}startxref\n${head.length}\n%%EOF`);
  };

  test.for([
    ["a classic table", pdfOf()],
    ["version 2.0", pdfOf({ version: "2.0" })],
    ["a cross-reference stream", stream("/Type /XRef /Size 1")],
    ["a name that only begins like encryption", pdfOf({ trailer: "/EncryptMetadata false" })],
  ] as const)("[T-154] with %s passes", ([, bytes]) => {
    expect(checkPdf(bytes)).toBeUndefined();
  });

  test.for([
    ["another version", pdfOf({ version: "3.0" })],
    ["its end cut off", pdfOf().subarray(0, -8)],
    ["too much behind its end", Buffer.concat([pdfOf(), Buffer.alloc(1024)])],
    ["references that are elsewhere", pdfOf({ startxref: 3 })],
    ["references past the end", pdfOf({ startxref: 99_999 })],
    ["encryption", pdfOf({ trailer: "/Encrypt 5 0 R" })],
    ["encryption under another spelling", pdfOf({ trailer: "/Encr#79pt 5 0 R" })],
    ["encryption in a cross-reference stream", stream("/Type /XRef /Encrypt 5 0 R")],
    ["an object that is no cross-reference", stream("/Type /Font")],
  ] as const)("[T-154] with %s is refused", ([, bytes]) => {
    expect(checkPdf(bytes)).toEqual(expect.any(String));
  });

  test("any tail is judged without an exception", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        checkPdf(Buffer.from(`%PDF-1.4\n${text}\nstartxref\n${text.length}\n%%EOF`));
      }),
    );
  });
});
