import fc from "fast-check";
import { expect, test } from "vitest";
import {
  CallIds,
  portableCallId,
  portableToolName,
} from "../../../../kernel/src/model/call-ids.ts";

test("ids are unique, bounded and never one the run has used (B118)", () => {
  const wireId = fc.oneof(
    fc.constantFrom("call_1", "call_1_2", "", " "),
    fc.string({ maxLength: 700 }),
  );
  fc.assert(
    fc.property(fc.array(wireId), fc.uniqueArray(wireId), (wireIds, used) => {
      const usedIds = new Set(used);
      const ids = new CallIds(usedIds);
      const assigned = wireIds.map((id) => ids.assign(id));
      expect(new Set(assigned).size).toBe(assigned.length);
      for (const id of assigned) {
        expect(usedIds.has(id)).toBe(false);
        expect(Buffer.byteLength(id)).toBeGreaterThan(0);
        expect(Buffer.byteLength(id)).toBeLessThanOrEqual(512);
      }
    }),
  );
});

test("an id that is free stays the model's own", () => {
  expect(new CallIds(new Set()).assign("toolu_01")).toBe("toolu_01");
});

test("portable forms fit every wire, and equal ids stay equal", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(portableCallId(text)).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(portableCallId(text)).toBe(portableCallId(text));
      expect(portableToolName(text)).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    }),
  );
});
