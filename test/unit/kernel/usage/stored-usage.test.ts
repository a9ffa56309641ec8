import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeUsage,
  encodeUsage,
  StoredUsage,
} from "../../../../kernel/src/usage/stored-usage.ts";
import { UsageCells } from "../../../../kernel/src/usage/usage-cells.ts";
import { usageRecord } from "./usage-fixture.ts";

const count = fc.maxSafeNat();
const known = fc.option(count, { nil: null });
const record = fc.record({
  model: fc.constantFrom("custom.a/m", "custom.b/m/n", "x/ü"),
  agent: fc.constantFrom("default", "title"),
  input: known,
  output: known,
  cacheRead: known,
  cost: known,
});

function cellsOf(records: readonly (readonly [number, Parameters<typeof usageRecord>[0]])[]) {
  const cells = new UsageCells();
  for (const [timeMs, options] of records) {
    const payload = usageRecord(options);
    if (payload.type !== "model_usage_recorded") throw new Error("no usage");
    cells.add(payload, new Date(timeMs).toISOString());
  }
  return cells;
}

test("what the cache keeps of a session's usage is exactly that", () => {
  const time = fc.integer({ min: 0, max: 4_000_000_000_000 });
  fc.assert(
    fc.property(fc.array(fc.tuple(time, record), { maxLength: 40 }), (records) => {
      const cells = cellsOf(records);
      const text = JSON.stringify(encodeUsage(cells, 7));
      const stored = StoredUsage.parse(JSON.parse(text));
      expect(stored.log_bytes).toBe(7);
      expect(decodeUsage(stored)).toEqual([...cells]);
    }),
  );
});

test("the cache is bounded: what is larger is left to the log", () => {
  const many = (size: number) =>
    cellsOf(Array.from({ length: size }, (_, index) => [index * 900_000, {}] as const));
  expect(encodeUsage(many(2048), 1)?.cells).toHaveLength(2048);
  expect(encodeUsage(many(2049), 1)).toBeUndefined();
  const models = cellsOf(
    Array.from({ length: 257 }, (_, index) => [0, { model: `custom.a/m${index}` }] as const),
  );
  expect(encodeUsage(models, 1)).toBeUndefined();
});

describe("a cache that contradicts itself is none", () => {
  const sound = { version: 1, log_bytes: 1, models: ["a/b"], agents: ["default"] };
  test.for([
    "0 1 0 1 1 1 0 0 0 1 5",
    "0 0 7 1 1 1 0 0 0 1 5",
    "0 0 0 -1 1 1 0 0 0 1 5",
    "0 0 0 1 1 1 0 0 0 1",
    "0 0 0 1 1 1 0 0 0 2 5",
    "0 0 0 1 1.5 1 0 0 0 1 5",
    "",
  ])("%j", (line) => {
    const parsed = StoredUsage.safeParse({ ...sound, cells: [line] });
    expect(parsed.success ? decodeUsage(parsed.data) : undefined).toBeUndefined();
  });
});
