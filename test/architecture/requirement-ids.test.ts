import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { titlesOf } from "../support/test-titles.ts";

const testRoot = join(import.meta.dirname, "..");
const specRoot = join(testRoot, "../docs/spec");
const ID = /\b(?:[TESCD]-\d{3}|B\d{3})\b/g;
const DEFINITION = /^(?:- (?:\*\*)?|\| |### )([TESCD]-\d{3}|B\d{3})\b(.*)$/gm;
const WITHDRAWN = /^(?: \([^)]*\)| \|)? withdrawn\b/;

const cited = new Set(
  readdirSync(testRoot, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:test|bench)\.ts$/.test(name) && !name.includes("node_modules"))
    .flatMap((name) => titlesOf(name, readFileSync(join(testRoot, name), "utf8")))
    .flatMap((title) => title.match(ID) ?? []),
);

const known = readdirSync(specRoot)
  .filter((name) => name.endsWith(".md"))
  .flatMap((name) => definedIn(readFileSync(join(specRoot, name), "utf8")));

describe("requirement ids", () => {
  test("every id that a title cites is a requirement of the specification", () => {
    expect([...cited].filter((id) => !known.includes(id))).toEqual([]);
  });

  test("no id is defined twice", () => {
    expect(known.filter((id, index) => known.indexOf(id) !== index)).toEqual([]);
  });

  test("ids without a test are reported", () => {
    for (const letter of ["T", "E", "S", "C", "D", "B"]) {
      const ids = known.filter((id) => id.startsWith(letter));
      const open = ids.filter((id) => !cited.has(id)).sort();
      process.stdout.write(
        `${letter}: ${ids.length - open.length} of ${ids.length} cited; open: ${open.join(" ")}\n`,
      );
      expect(ids.length).toBeGreaterThan(0);
    }
  });

  test.for([
    ['test("[T-001] a", f);', ["[T-001] a"]],
    ["test.for([[1]])(`[T-001] $" + "{name} b`, f);", ["[T-001]  b"]],
    ['test.for<[string]>([["T-002"]])("[T-001] %s", f);', ["[T-001] %s"]],
    ['test.for([["[T-001] a", "T-002"]])("%s b", f);', ["%s b", "[T-001] a"]],
    ['describe.skipIf(no)("[T-001] a", () => { test("b", f); });', ["[T-001] a", "b"]],
    ['// test("[T-001] a", f);\nconst b = "T-002"; expect("T-003").toBe(1);', []],
    ['test("a", () => { kernel.run("T-001"); other("T-002"); });', ["a"]],
  ] as const)("the titles of %j are %j", ([source, titles]) => {
    expect(titlesOf("some.test.ts", source)).toEqual(titles);
  });

  test.for([
    ["- T-001 (§1) A rule, see T-002", ["T-001"]],
    ["| T-001 | A rule | 1 |\n  T-002 goes on", ["T-001"]],
    ["- **D-001** A rule\n### B001 (read) A case\nand B002", ["D-001", "B001"]],
    ["- T-001 (§3) withdrawn\n| T-002 | withdrawn | 2 |", []],
    ["- **T-001** A list that is withdrawn later", ["T-001"]],
  ] as const)("%j defines %j", ([text, ids]) => {
    expect(definedIn(text)).toEqual(ids);
  });
});

function definedIn(text: string): string[] {
  return [...text.matchAll(DEFINITION)].flatMap(([, id = "", rest = ""]) =>
    WITHDRAWN.test(rest) ? [] : [id],
  );
}
