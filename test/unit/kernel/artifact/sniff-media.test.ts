import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isDeclaredAs,
  normalizeMime,
  sniffMedia,
} from "../../../../kernel/src/artifact/sniff-media.ts";
import {
  gifOf,
  isoOf,
  jpegOf,
  pdfOf,
  pngOf,
  riffOf,
  webpOf,
} from "../../../support/media-files.ts";

const latin1 = (text: string) => Buffer.from(text, "latin1");
const sniff = (bytes: Buffer, name: string | null = null) =>
  sniffMedia(bytes, bytes.byteLength, name)?.mime;

describe("the kind of content", () => {
  test.for([
    ["image/png", pngOf(1, 1)],
    ["image/jpeg", jpegOf(1, 1)],
    ["image/gif", gifOf(1, 1)],
    ["image/gif", latin1("GIF87a")],
    ["image/webp", webpOf(1, 1)],
    ["application/pdf", pdfOf()],
    ["audio/mpeg", latin1("ID3\x04")],
    ["audio/mpeg", latin1("\xff\xfb\x90\0")],
    ["audio/wav", riffOf("WAVE")],
    ["audio/ogg", latin1("OggS\0")],
    ["audio/flac", latin1("fLaC\0")],
    ["video/quicktime", isoOf("qt  ")],
    ["video/3gpp", isoOf("3gp5")],
    ["video/mp4", isoOf("isom")],
    ["video/mp4", isoOf("iso9")],
    ["video/mp4", isoOf("mp42")],
    ["video/mp4", isoOf("M4V ")],
    ["video/mp4", isoOf("XXXX", "YYYY", "avc1")],
    ["video/webm", latin1("\x1a\x45\xdf\xa3")],
    ["video/x-msvideo", riffOf("AVI ")],
    ["video/x-flv", latin1("FLV\x01")],
    ["video/mpeg", latin1("\0\0\x01\xba")],
    ["video/mpeg", latin1("\0\0\x01\xb3")],
    ["video/wmv", Buffer.from("3026b2758e66cf11a6d900aa0062ce6c", "hex")],
  ] as const)("[T-151] %s is told by its first bytes", ([mime, bytes]) => {
    expect(sniff(bytes)).toBe(mime);
  });

  test("[T-151] a Matroska file is told from WebM by its name alone", () => {
    const bytes = latin1("\x1a\x45\xdf\xa3");
    expect(sniff(bytes, "a.MKV")).toBe("video/x-matroska");
    expect(sniff(bytes, "a.webm")).toBe("video/webm");
  });

  test("[T-151] a box with a 64-bit size is read, one that reaches past the file is not", () => {
    const wide = Buffer.concat([
      Buffer.from("0000000166747970000000000000001c", "hex"),
      latin1("isom\0\0\0\0isom"),
    ]);
    expect(sniff(wide)).toBe("video/mp4");
    expect(sniff(isoOf("isom").subarray(0, 12))).toBeUndefined();
    expect(sniffMedia(isoOf("isom"), 15)).toBeUndefined();
  });

  test.for([
    ["UTF-16 text", latin1("\xff\xfeh\0i\0")],
    ["UTF-8 text", latin1("hello")],
    ["an unknown container", isoOf("XXXX", "YYYY")],
    ["a RIFF of another form", riffOf("XXXX")],
    ["a short beginning of a PNG", pngOf(1, 1).subarray(0, 7)],
    ["nothing", Buffer.alloc(0)],
  ] as const)("%s is no media", ([, bytes]) => {
    expect(sniff(bytes)).toBeUndefined();
  });

  test("whatever comes, it is answered", () => {
    const heads = ["", "RIFF\0\0\0\0", "\0\0\0\x18ftyp", "\0\0\0\x01ftyp", "\xff"].map(latin1);
    fc.assert(
      fc.property(fc.constantFrom(...heads), fc.uint8Array(), (head, rest) => {
        const bytes = Buffer.concat([head, rest]);
        sniffMedia(bytes, bytes.byteLength);
      }),
    );
  });
});

describe("a declared type", () => {
  test.for([
    ["IMAGE/JPG; q=1", "image/jpeg"],
    ["video/mov", "video/quicktime"],
    ["video/avi", "video/x-msvideo"],
    ["video/mpg", "video/mpeg"],
    ["toString", "tostring"],
  ] as const)("%s is %s", ([declared, usual]) => {
    expect(normalizeMime(declared)).toBe(usual);
  });

  test("agrees with the content or does not", () => {
    expect(isDeclaredAs({ kind: "image", mime: "image/png" }, "image/png")).toBe(true);
    expect(isDeclaredAs({ kind: "image", mime: "image/png" }, "image/jpeg")).toBe(false);
    expect(isDeclaredAs({ kind: "video", mime: "video/webm" }, "video/x-matroska")).toBe(true);
  });
});
