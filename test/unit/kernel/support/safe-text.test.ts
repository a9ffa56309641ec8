import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  cutUtf8,
  safeLines,
  safeText,
  shownLines,
} from "../../../../kernel/src/support/safe-text.ts";

describe("text for people", () => {
  test.for([
    ["a\u0000b\u001b[1mc\u0085d\n", "a b [1mc d"],
    ["", "unavailable"],
    [" \n\t ", "unavailable"],
    ["ééé", "éé"],
    ["rm \u202Etxt.exe\u202C", "rm  txt.exe"],
    ["r\u200Bm\u2060 \uFEFFx\u3164y\u{E0041}z", "r m   x y z"],
    ["👩\u200D🚀 ❤\uFE0F a\u200Db", "👩\u200D🚀 ❤\uFE0F a b"],
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

  test("[T-036] what people decide on shows no line in another order, what models read keeps it", () => {
    const text = "a\n\t\u202Eb\u200C";
    expect(shownLines(text, 1024)).toBe("a\n\t b ");
    expect(safeLines(text, 1024)).toBe(text);
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
