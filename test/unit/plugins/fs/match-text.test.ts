import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findText, replaceBreaks } from "../../../../plugins/fs/src/match-text.ts";

/** Applies an edit the way the tool does; undefined when the match is not unique. */
function apply(file: Buffer | string, oldText: string, newText: string): string | undefined {
  const bytes = Buffer.from(file);
  const { count, first } = findText(bytes, oldText);
  if (count !== 1 || first === undefined) return undefined;
  return Buffer.concat([
    bytes.subarray(0, first.start),
    replaceBreaks(bytes, first, newText),
    bytes.subarray(first.end),
  ]).toString("utf8");
}

describe("line breaks", () => {
  test.for([
    ["mixed file, LF in the call", "one\ntwo\r\nthree\n", "one\ntwo", "1\n2", "1\n2\r\nthree\n"],
    ["CRLF replaced by LF text", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"],
    ["CRLF in the call, LF file", "a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n"],
    ["each break keeps its own ending", "a\nb\r\nc\n", "a\nb\nc", "1\n2\n3", "1\n2\r\n3\n"],
    [
      "surplus takes the last replaced",
      "a\nb\r\nc\n",
      "a\nb\n",
      "1\n2\n3\n4\n",
      "1\n2\r\n3\r\n4\r\nc\n",
    ],
    ["none replaced: the line's own", "a\nb\r\nc\n", "b", "1\n2", "a\n1\r\n2\r\nc\n"],
    ["last line: the file's first", "a\r\nb", "b", "1\n2", "a\r\n1\r\n2"],
    ["no break anywhere: LF", "ab", "b", "1\r\n2", "a1\n2"],
  ] as const)("[B008] [B020] [T-065] %s", ([, file, oldText, newText, expected]) => {
    expect(apply(file, oldText, newText)).toBe(expected);
  });

  test("[B020] new text that ends in a line break adds no blank line and no CR CR LF", () => {
    const file = "a\r\nb\r\n";
    expect(apply(file, "a\n", "x\n")).toBe("x\r\nb\r\n");
    expect(apply(file, "a", "x\r")).toBe("x\r\nb\r\n");
    expect(apply(file, "a\n", "x\r\r\n")).toBe("x\r\nb\r\n");
  });
});

test.for([`say("$& $1 $$ $' end")`, "a code span `$`", "$`"])(
  "[B010] [B011] %s is inserted byte for byte",
  (newText) => {
    const file = "head\nsay(1)\ntail\n";
    expect(apply(file, "say(1)", newText)).toBe(`head\n${newText}\ntail\n`);
  },
);

test("[T-066] matches are counted without overlap and named by line", () => {
  expect(findText(Buffer.from("x\nab\n\r\nab ab\n"), "ab")).toMatchObject({
    count: 3,
    lines: [2, 4, 4],
  });
  expect(findText(Buffer.from("aaa"), "aa").count).toBe(1);
  expect(findText(Buffer.from("aaaa"), "aa").count).toBe(2);
});

test("[T-066] the byte order mark is not part of the text", () => {
  expect(findText(Buffer.from("\ufeffab"), "\ufeffab").count).toBe(0);
  expect(findText(Buffer.from("\ufeffab"), "ab").first).toEqual({ start: 3, end: 5 });
});

describe("laws", () => {
  const text = fc
    .array(fc.constantFrom("a", "b", "é", "\n", "\r\n", "$&"), { maxLength: 14 })
    .map((parts) => parts.join(""));
  const lf = (content: string) => content.replaceAll("\r\n", "\n");

  test("[T-065] apart from endings an edit is the plain replacement of one text by another", () => {
    fc.assert(
      fc.property(text, text, text, text, (before, oldText, after, newText) => {
        fc.pre(oldText !== "");
        const file = before + oldText + after;
        const edited = apply(file, oldText, newText);
        const at = lf(file).indexOf(lf(oldText));
        const unique = findText(Buffer.from(file), oldText).count === 1;
        expect(edited !== undefined).toBe(unique);
        if (edited === undefined) return;
        const head = lf(file).slice(0, at);
        const tail = lf(file).slice(at + lf(oldText).length);
        expect(lf(edited)).toBe(head + lf(newText) + tail);
      }),
    );
  });

  test("[T-065] [T-184] bytes outside the match never change and no CR CR LF appears", () => {
    fc.assert(
      fc.property(text, text, text, text, (before, oldText, after, newText) => {
        fc.pre(oldText !== "");
        const file = Buffer.from(before + oldText + after);
        const { count, first } = findText(file, oldText);
        fc.pre(count === 1 && first !== undefined);
        if (first === undefined) return;
        expect(lf(file.toString("utf8", first.start, first.end))).toBe(lf(oldText));
        expect(replaceBreaks(file, first, newText).toString()).not.toContain("\r\r");
      }),
    );
  });
});
