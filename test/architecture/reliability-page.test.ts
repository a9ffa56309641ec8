import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { claimsOf, FAULTS, IMPOSSIBLE } from "../reference/fault-matrix.ts";
import { RELIABILITY_PAGE, reliabilityPage } from "../reference/reliability-page.ts";

describe("the page of the fault matrix", () => {
  test("says what the titles of the tests say; `npm run reference` writes it", () => {
    expect(readFileSync(RELIABILITY_PAGE, "utf8")).toBe(reliabilityPage());
  });

  test("every fault has its row, and no test proves what cannot happen", () => {
    const rows = reliabilityPage()
      .split("\n")
      .filter((line) => line.startsWith("| **"));
    expect(rows).toHaveLength(Object.keys(FAULTS).length);
    const impossible = Object.entries(IMPOSSIBLE).reduce(
      (sum, [, places]) => sum + places.length,
      0,
    );
    expect(rows.join("").split(" – ").length - 1).toBe(impossible);
  });

  test.for([
    ["[killed: append, sync] [S-001] a", ["killed/append", "killed/sync"]],
    ["[disk full: artifact] [I/O error: append] a", ["disk full/artifact", "I/O error/append"]],
    ["[S-001] a: b", []],
    ["[another: append] a", []],
  ] as const)("%j claims %j", ([title, cells]) => {
    expect(claimsOf(title).map(({ fault, place }) => `${fault}/${place}`)).toEqual(cells);
  });

  test("a place that does not exist is an error", () => {
    expect(() => claimsOf("[killed: nowhere] a")).toThrow("[killed: nowhere]");
  });
});
