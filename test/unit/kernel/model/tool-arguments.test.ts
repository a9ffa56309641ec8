import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseToolArguments } from "../../../../kernel/src/model/tool-arguments.ts";

describe("arguments of a call", () => {
  test.for(["", " \n", "null", "{}"])("%o is no arguments", (text) => {
    expect(parseToolArguments(text)).toEqual({ kind: "object", input: {} });
  });

  test("every proper beginning of an object is cut off", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), (value) => {
        const text = JSON.stringify(value);
        const input = JSON.parse(text) as unknown;
        expect(parseToolArguments(text)).toEqual({ kind: "object", input });
        const beginnings = Array.from({ length: text.length - 1 }, (_, n) => text.slice(0, n + 1));
        return beginnings.every((each) => parseToolArguments(each).kind === "cut_off");
      }),
      { numRuns: 50 },
    );
  });

  test.for(["[]", "7", '"x"', "true", "{a:1}", '{"a":1}}', "read the file", '{"a":"\u0001"}'])(
    "%o is malformed",
    (text) => {
      expect(parseToolArguments(text)).toEqual({ kind: "malformed" });
    },
  );

  test("nesting without end is malformed, not a crash", () => {
    const text = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
    expect(parseToolArguments(text)).toEqual({ kind: "malformed" });
  });
});
