import fc from "fast-check";
import { expect, test } from "vitest";
import { locateMember } from "../../../../kernel/src/plugin/locate-member.ts";

const TEXT = `{
  "name": "a\\"b[{",
  "tools": [
    { "name": "one" },
    {
      "name": "two",
      "parameters": { "type": "object" }
    }
  ],
  "runtime": {}
}`;

test.for([
  [["name"], 2],
  [["tools", "one"], 4],
  [["tools", "two", "parameters", "type"], 7],
  [["tools", "1", "name"], 6],
  [["tools", "three"], 3],
  [["runtime", "entry"], 10],
  [["nowhere"], 1],
] as const)("%j begins on line %i", ([path, line]) => {
  expect(locateMember(TEXT, [...path])).toBe(line);
});

test("any JSON is walked to its end, whatever is looked for", () => {
  fc.assert(
    fc.property(fc.json(), fc.array(fc.string(), { maxLength: 4 }), (json, path) => {
      const lines = JSON.stringify(JSON.parse(json), null, 2);
      const line = locateMember(lines, path);
      expect(line).toBeGreaterThanOrEqual(1);
      expect(line).toBeLessThanOrEqual(lines.split("\n").length);
    }),
  );
});
