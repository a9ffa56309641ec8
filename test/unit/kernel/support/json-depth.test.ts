import { expect, test } from "vitest";
import { isNestedDeeper } from "../../../../kernel/src/support/json-depth.ts";

test.for<[string, number, boolean]>([
  ["1", 0, false],
  ["[]", 1, false],
  ["[]", 0, true],
  ["[[]]", 1, true],
  ['{"a":[{"b":1}]}', 3, false],
  ['{"a":[{"b":1}]}', 2, true],
  [`${"[".repeat(100_000)}${"]".repeat(100_000)}`, 128, true],
])("%s beyond %i levels: %s", ([json, max, deeper]) => {
  expect(isNestedDeeper(JSON.parse(json), max)).toBe(deeper);
});

test("an absent value has no depth", () => {
  expect(isNestedDeeper(undefined, 0)).toBe(false);
});
