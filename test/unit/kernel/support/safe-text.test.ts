import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutUtf8, safeLines, safeText } from "../../../../kernel/src/support/safe-text.ts";

describe("text for people", () => {
  test.for([
    ["a\u0000b\u001b[1mc\u0085d\n", "a b [1mc d"],
    ["", "unavailable"],
    [" \n\t ", "unavailable"],
    ["ééé", "éé"],
  ] as const)("[S-010] %j becomes %j", ([text, safe]) => {
    expect(safeText(text, text.startsWith("é") ? 5 : 1024)).toBe(safe);
  });

  test("[S-010] whatever comes in, one line within the bound comes out", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.integer({ min: 11, max: 64 }),
        (text, bytes) => {
          const safe = safeText(text, bytes);
          expect(safe).not.toMatch(/\p{Cc}/u);
          expect(safe).not.toBe("");
          expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(bytes);
        },
      ),
    );
  });

  test("[T-036] several lines keep newline and tab and lose every other control", () => {
    expect(safeLines("a\n\tb\r\u0007c", 1024)).toBe("a\n\tb  c");
  });

  test("a cut is the longest prefix that splits no character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat({ max: 40 }), (text, bytes) => {
        const cut = cutUtf8(text, bytes);
        expect(text.startsWith(cut)).toBe(true);
        const next = [...text.slice(cut.length)][0] ?? "";
        const fits = Buffer.byteLength(cut) <= bytes;
        expect(fits && (next === "" || Buffer.byteLength(cut + next) > bytes)).toBe(true);
      }),
    );
  });
});
