import type { SessionId } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseEvictions } from "../../../../kernel/src/session/choose-evictions.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = 100 * HOUR_MS;
const child = (idleHours: number | null) => ({
  sessionId: createId<SessionId>(),
  idleSinceMs: idleHours === null ? null : NOW_MS - idleHours * HOUR_MS,
});
const limits = (maxResidentSubagents: number, idleHours = 1) => ({
  maxResidentSubagents,
  idleEvictionAfterMs: idleHours * HOUR_MS,
});

describe("[S-101] which children are put away", () => {
  test("none as long as the threshold is kept, however idle", () => {
    expect(chooseEvictions([child(9), child(9)], limits(2), NOW_MS)).toEqual([]);
  });

  test("above it the oldest idle ones, as many as there are too many", () => {
    const [two, five, three] = [child(2), child(5), child(3)];
    const all = [two, five, child(null), three];
    expect(chooseEvictions(all, limits(3), NOW_MS)).toEqual([five]);
    expect(chooseEvictions(all, limits(2), NOW_MS)).toEqual([five, three]);
  });

  test("it is soft: what is not idle long enough stays, and so does what something goes on in", () => {
    const all = [child(0.5), child(null), child(1)];
    expect(chooseEvictions(all, limits(0), NOW_MS)).toEqual([all[2]]);
    expect(chooseEvictions(all, limits(0, 0), NOW_MS)).toEqual([all[2], all[0]]);
  });

  test("never one that is not idle, never more than needed, never a younger one before an older one", () => {
    const idle = fc.option(fc.double({ min: 0, max: 50, noNaN: true }));
    fc.assert(
      fc.property(fc.array(idle, { maxLength: 30 }), fc.nat(30), (hours, max) => {
        const all = hours.map(child);
        const chosen = chooseEvictions(all, limits(max), NOW_MS);
        expect(chosen.length).toBeLessThanOrEqual(Math.max(0, all.length - max));
        const oldest = Math.min(
          ...all.filter((c) => !chosen.includes(c)).map((c) => c.idleSinceMs ?? NOW_MS),
        );
        for (const { idleSinceMs } of chosen) {
          expect(idleSinceMs).toBeLessThanOrEqual(Math.min(oldest, NOW_MS - HOUR_MS));
        }
      }),
    );
  });
});
