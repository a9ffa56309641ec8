import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const testRoot = join(import.meta.dirname, "..");
const specRoot = join(testRoot, "../docs/spec");
const ID = /\b(?:[TESCD]-\d{3}|B\d{3})\b/g;

const cited = new Set(
  readdirSync(testRoot, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:test|bench)\.ts$/.test(name) && !name.includes("node_modules"))
    .flatMap((name) => readFileSync(join(testRoot, name), "utf8").match(ID) ?? []),
);

const known = new Map(
  readdirSync(specRoot)
    .filter((name) => name.endsWith(".md"))
    .map((name) => [name, new Set(readFileSync(join(specRoot, name), "utf8").match(ID) ?? [])]),
);

describe("requirement ids", () => {
  test("every id that a title cites exists in the specification", () => {
    const all = new Set([...known.values()].flatMap((ids) => [...ids]));
    expect([...cited].filter((id) => !all.has(id))).toEqual([]);
  });

  test("ids without a test are reported", () => {
    for (const letter of ["T", "E", "S", "C", "D", "B"]) {
      const ids = new Set(
        [...known.values()].flatMap((set) => [...set]).filter((id) => id.startsWith(letter)),
      );
      const open = [...ids].filter((id) => !cited.has(id)).sort();
      process.stdout.write(
        `${letter}: ${ids.size - open.length} of ${ids.size} cited; open: ${open.join(" ")}\n`,
      );
    }
    expect(known.size).toBeGreaterThan(0);
  });
});
