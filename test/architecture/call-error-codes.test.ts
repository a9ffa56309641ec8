import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const REPOSITORY = join(import.meta.dirname, "../..");
const SHEET = readFileSync(join(REPOSITORY, "docs/spec/extension-protocol.md"), "utf8");
const TABLE = SHEET.slice(SHEET.indexOf("## 13. Errors"), SHEET.indexOf("## 14."));
const MADE = /new (?:Cookie|Tool)Error\(\s*"([a-z_]+)"|\bcode: "([a-z_]+)"/g;

test("[S-255] [T-044] what ends a tool call has a code of the table of errors", () => {
  const places = ["kernel/src/tool", "plugins/fs/src", "plugins/bash/src"];
  const files = places.flatMap((place) =>
    readdirSync(join(REPOSITORY, place)).map((name) => join(REPOSITORY, place, name)),
  );
  const codes = new Set(
    files.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(MADE)].map(([, made, given]) => made ?? given ?? ""),
    ),
  );
  expect(codes).toContain("operation_changed");
  // An impossible state of the kernel's own ends the run, and no call.
  codes.delete("engine");
  expect([...codes].filter((code) => !TABLE.includes(`\`${code}\``))).toEqual([]);
});
