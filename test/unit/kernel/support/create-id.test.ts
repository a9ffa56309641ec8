import { expect, test } from "vitest";
import { createId } from "../../../../kernel/src/support/create-id.ts";

test("ids are lower-case UUIDs of version 7 in the order of their creation", () => {
  const before = Date.now();
  const ids = Array.from({ length: 10_000 }, () => createId<string>());
  const after = Date.now();
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(ids).toEqual([...ids].sort());
  expect(new Set(ids).size).toBe(ids.length);
  const madeAt = Number.parseInt((ids[0] ?? "").replaceAll("-", "").slice(0, 12), 16);
  expect(madeAt).toBeGreaterThanOrEqual(before);
  expect(madeAt).toBeLessThanOrEqual(after + 10);
});
