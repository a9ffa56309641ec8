import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PreviewBuilder } from "../../../../kernel/src/artifact/preview-output.ts";

function preview(
  form: "exact" | "terminal",
  chunks: readonly string[],
  limits = { maxLines: 2000, maxBytes: 51_200 },
) {
  const builder = new PreviewBuilder(limits, form);
  for (const chunk of chunks) builder.write(Buffer.from(chunk));
  return builder.finish();
}

describe("preview of one stream", () => {
  test.for([
    { text: "", shown: "", offset: 0, byte: 0 },
    { text: "a\nb\n", shown: "a\nb\n", offset: 2, byte: 0 },
    { text: "a\nb\nc\n", shown: "a\nb\n", offset: 2, byte: 0 },
    { text: "a\nb\nc", shown: "a\nb\n", offset: 2, byte: 0 },
  ])("[T-134] at most two lines of $text are shown", ({ text, shown, offset, byte }) => {
    expect(preview("exact", [text], { maxLines: 2, maxBytes: 100 })).toEqual({
      text: shown,
      nextOffset: offset,
      nextByte: byte,
      coveredBytes: Buffer.byteLength(shown),
    });
  });

  test("[T-134] output of exactly the byte limit is shown whole", () => {
    const text = `${"x".repeat(9)}\n${"y".repeat(10)}`;
    expect(preview("exact", [text], { maxLines: 5, maxBytes: 20 })).toMatchObject({
      text,
      coveredBytes: 20,
    });
  });

  test("[T-134] a last line ending fits when it takes the last byte, and no later", () => {
    const limits = (maxBytes: number) => ({ maxLines: 5, maxBytes });
    expect(preview("exact", ["ab\ncd\n"], limits(6))).toMatchObject({
      text: "ab\ncd\n",
      nextOffset: 2,
      nextByte: 0,
    });
    expect(preview("exact", ["ab\ncd\n"], limits(5))).toMatchObject({
      text: "ab\ncd",
      nextOffset: 1,
      nextByte: 2,
    });
  });

  test("[T-137] a cut in mid-line points back to that line and its byte, between characters", () => {
    const text = `one\n${"é".repeat(10)}`;
    expect(preview("exact", [text], { maxLines: 5, maxBytes: 9 })).toEqual({
      text: "one\néé",
      nextOffset: 1,
      nextByte: 4,
      coveredBytes: 8,
    });
  });

  test("[T-137] what is covered and what follows always make up the stored text", () => {
    const piece = fc.string({
      unit: fc.constantFrom("a", "é", "😀", "\n", "\r\n", " "),
      maxLength: 12,
    });
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 12 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom("exact" as const, "terminal" as const),
        (pieces, maxLines, maxBytes, form) => {
          const stored = Buffer.from(pieces.join(""));
          const result = preview(form, pieces, { maxLines, maxBytes });
          const lines = stored.toString().split("\n");
          const lineStart = Buffer.byteLength(lines.slice(0, result.nextOffset).join("\n"));
          const start = result.nextOffset === 0 ? 0 : lineStart + 1;
          expect(result.text).toBe(stored.toString("utf8", 0, result.coveredBytes));
          expect(result.coveredBytes).toBe(start + result.nextByte);
          expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(maxBytes);
        },
      ),
    );
  });

  test("[T-192] a line overwritten by lone carriage returns shows its last state", () => {
    const bars = Array.from({ length: 100 }, (_, i) => `\u001b[32m${i + 1}%\u001b[0m`).join("\r");
    expect(preview("terminal", [`${bars}\n`, "done\r\n"]).text).toBe("100%\ndone\r\n");
  });

  test("[T-192] [B062] five thousand progress lines stay readable and counts refer to the stored text", () => {
    const line = `${Array.from({ length: 100 }, (_, i) => `\u001b[1m${i + 1}%`).join("\r")}\u001b[0m\n`;
    const result = preview("terminal", Array<string>(5000).fill(line));
    expect(result).toEqual({
      text: "100%\n".repeat(2000),
      nextOffset: 2000,
      nextByte: 0,
      coveredBytes: 2000 * line.length,
    });
  });

  test.for([
    ["colours", "\u001b[1;31mred\u001b[0m", "red"],
    ["a title", "\u001b]0;title\u0007text", "text"],
    ["a link", "\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\", "link"],
    ["a charset choice", "\u001b(Btext", "text"],
    ["a single shift", "\u001b7a\u001b8", "a"],
    ["a sequence broken by text", "\u001b[12é", "é"],
    ["a string left open", "\u001b]0;lost\nkept", "\nkept"],
  ] as const)("[T-192] %s leaves no escape code behind, however it is cut", ([, text, shown]) => {
    expect(preview("terminal", [text]).text).toBe(shown);
    expect(preview("terminal", [...text]).text).toBe(shown);
  });

  test("[T-192] an erased line after a carriage return keeps its last state", () => {
    expect(preview("terminal", ["50%\r\u001b[K", "\r\u001b[K", "60%\r", "\n"]).text).toBe(
      "60%\r\n",
    );
  });

  test("[T-137] a collapsed line that does not fit is counted from its beginning", () => {
    const text = `a\nxx\r${"y".repeat(50)}`;
    expect(preview("terminal", [text], { maxLines: 9, maxBytes: 10 })).toEqual({
      text: `a\n${"y".repeat(8)}`,
      nextOffset: 1,
      nextByte: 0,
      coveredBytes: 2,
    });
  });
});
