import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonLine, printable, printableLines } from "../../../cli/src/printable.ts";

test("one line keeps letters and loses controls and marks that reorder", () => {
  expect(printable("a\u001B[31m\u009Bb\u202Ec\nd é 漢 r\u200Bm")).toBe("a [31m b c d é 漢 r m");
});

test("several lines keep newline and tab alone", () => {
  expect(printableLines("a\tb\r\nc\u001B]0;x\u0007\u009B\u202E")).toBe("a\tb\nc]0;x");
});

test("a JSON line carries every text unchanged and no control character", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const line = jsonLine({ text });
      expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
      expect(JSON.parse(line)).toEqual({ text });
    }),
  );
});
