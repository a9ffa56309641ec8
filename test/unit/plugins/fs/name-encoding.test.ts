import fc from "fast-check";
import { expect, test } from "vitest";
import { nameEncoding, nameWideEncoding } from "../../../../plugins/fs/src/name-encoding.ts";
import { Utf8Check } from "../../../../plugins/fs/src/utf8-check.ts";

test.for([
  ["Latin-1", Buffer.from("n = 1\n# na\xefve caf\xe9\n", "latin1")],
  ["Windows-1252", Buffer.from("it\x92s \x93quoted\x94\n", "latin1")],
  ["Shift_JIS", Buffer.from("93fa967b8cea82cc83658358836782c582b70a", "hex")],
  ["EUC-JP", Buffer.from("c6fccbdcb8eca4cea5c6a5b9a5c8a4c7a4b90a", "hex")],
  ["UTF-16LE", Buffer.from("\ufeffhi\n", "utf16le")],
  ["UTF-16BE", Buffer.from("\ufeffhi\n", "utf16le").swap16()],
  ["UTF-32LE", Buffer.from("fffe000068000000", "hex")],
  ["binary", Buffer.from("00010203ff00fe", "hex")],
] as const)("[T-059] bytes that are no UTF-8 are named as %s", ([name, bytes]) => {
  expect(nameEncoding(bytes)).toBe(name);
});

test("[T-059] UTF-16 without a mark is told by its zero bytes, NUL-padded text is not taken for it", () => {
  const text = Buffer.from("plain words, all ASCII\n", "utf16le");
  expect(nameWideEncoding(text)).toBe("UTF-16LE");
  expect(nameWideEncoding(Buffer.from(text).swap16())).toBe("UTF-16BE");
  expect(nameWideEncoding(Buffer.concat([Buffer.from("line\n"), Buffer.alloc(4000)]))).toBe(
    undefined,
  );
});

test("[T-059] UTF-8 is recognized however its bytes are cut into pieces", () => {
  const bytes = fc.oneof(
    fc.string({ unit: "binary" }).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  );
  fc.assert(
    fc.property(bytes, fc.integer({ min: 1, max: 7 }), (data, size) => {
      const check = new Utf8Check();
      for (let at = 0; at < data.length; at += size) check.push(data.subarray(at, at + size));
      expect(check.end()).toBe(Buffer.from(data.toString("utf8")).equals(data));
    }),
  );
});
