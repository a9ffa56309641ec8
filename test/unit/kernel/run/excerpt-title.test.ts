import { expect, test } from "vitest";
import { excerptTitle } from "../../../../kernel/src/run/excerpt-title.ts";

test.for([
  ["plain", "plain", 80],
  ["  two \n\n\t lines ", "two lines", 80],
  ["abcdef", "abc", 3],
  ["ab cdef", "ab", 3],
  ["👍👍👍", "👍👍", 2],
  ["\u0000\u001b[31mred", "[31mred", 80],
  [" \n\t ", null, 80],
  ["é".repeat(400), "é".repeat(256), 1000],
] as const)("[S-031] the excerpt of %j is %j", ([input, expected, maxChars]) => {
  expect(excerptTitle(input, maxChars)).toBe(expected);
});
