import { expect, test } from "vitest";
import { formatKeyPath } from "../../../../kernel/src/config/key-path.ts";

test.for([
  [["a", "b_1", "c-2"], "a.b_1.c-2"],
  [["providers", "custom.x", "models", "a/b"], 'providers."custom.x".models."a/b"'],
  [["a", 0, "b", 12], "a[0].b[12]"],
  [["", 'q"q', "é"], '""."q\\"q"."é"'],
  [["a\nb\u001b"], '"a\\nb\\u001b"'],
  [["x".repeat(100)], `"${"x".repeat(80)}…"`],
] as const)("[C-030] the path %j reads %s", ([path, text]) => {
  expect(formatKeyPath(path)).toBe(text);
});
