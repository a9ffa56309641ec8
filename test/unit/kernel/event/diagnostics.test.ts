import type { PluginDiagnosticKind, SessionId } from "@cookie-agent/sdk/protocol";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type DiagnosticCount,
  DiagnosticCounters,
} from "../../../../kernel/src/event/diagnostic-counters.ts";
import { Diagnostics, type DiagnosticsOptions } from "../../../../kernel/src/event/diagnostics.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";

const A = createId<SessionId>();
const B = createId<SessionId>();

/** Diagnostics on a clock of the test's, and what each append brought. */
function openDiagnostics(options: Partial<DiagnosticsOptions> = {}) {
  const appended: { sessionId: SessionId; counts: readonly DiagnosticCount[] }[] = [];
  const incomplete: string[] = [];
  const diagnostics = new Diagnostics({
    append: async (sessionId, counts) => void appended.push({ sessionId, counts }),
    onIncomplete: (plugin) => incomplete.push(plugin),
    ...options,
  });
  return { diagnostics, appended, incomplete };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("coalescing", () => {
  test("[E-152] [S-243] equal news of 100 ms is one event with its count, one append per session", async () => {
    const { diagnostics, appended } = openDiagnostics();
    for (let i = 0; i < 1000; i += 1) diagnostics.note(A, "p", "event_drop", "full");
    diagnostics.note(A, "p", "rate_limited", "too much");
    diagnostics.note(B, "p", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(99);
    expect(appended).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(appended).toEqual([
      {
        sessionId: A,
        counts: [
          { plugin: "p", kind: "event_drop", message: "full", count: 1000 },
          { plugin: "p", kind: "rate_limited", message: "too much", count: 1 },
        ],
      },
      {
        sessionId: B,
        counts: [{ plugin: "p", kind: "event_drop", message: "full", count: 1 }],
      },
    ]);
  });

  test("[S-244] no timer runs before anything is noted, and none after the flush", async () => {
    const { diagnostics } = openDiagnostics();
    expect(vi.getTimerCount()).toBe(0);
    diagnostics.note(A, "p", "event_drop", "full");
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("[E-152] controls become spaces and 200 characters of a message are kept", () => {
    const counters = new DiagnosticCounters(256);
    const count = { plugin: "p", kind: "event_drop", count: 1 } as const;
    counters.add(A, { ...count, message: `a\n\u001b[31m${"é".repeat(300)}` });
    counters.add(A, { ...count, message: `a\n\u001b[31m${"é".repeat(400)}` });
    const [kept] = counters.take().get(A) ?? [];
    expect(kept).toEqual({ ...count, message: `a  [31m${"é".repeat(193)}`, count: 2 });
  });

  test("[E-152] the 257th message of a batch is counted without its text", () => {
    const counters = new DiagnosticCounters(256);
    const count = { plugin: "p", kind: "event_drop", count: 1 } as const;
    for (let i = 0; i < 300; i += 1) counters.add(A, { ...count, message: `message ${i}` });
    const counts = counters.take().get(A) ?? [];
    expect(counts).toHaveLength(257);
    expect(counts.at(-1)).toEqual({ ...count, message: "(overflow)", count: 44 });
  });

  test("[S-243] however many keys there are, no count is lost or invented", () => {
    const kinds: PluginDiagnosticKind[] = ["event_drop", "rate_limited"];
    const noted = fc.record({
      session: fc.constantFrom(A, B),
      plugin: fc.constantFrom("p", "q"),
      kind: fc.constantFrom(...kinds),
      message: fc.string({ maxLength: 3 }),
      count: fc.integer({ min: 1, max: 5 }),
    });
    const keyOf = ({ plugin, kind }: { plugin: string; kind: string }) => `${plugin} ${kind}`;
    const totals = (counts: Iterable<{ key: string; count: number }>) => {
      const sums: Record<string, number> = {};
      for (const { key, count } of counts) sums[key] = (sums[key] ?? 0) + count;
      return sums;
    };
    fc.assert(
      fc.property(
        fc.array(noted, { maxLength: 200 }),
        fc.integer({ min: 0, max: 20 }),
        (all, keys) => {
          const counters = new DiagnosticCounters(keys);
          for (const { session, ...count } of all) counters.add(session, count);
          const taken = [...counters.take()].flatMap(([session, counts]) =>
            counts.map((count) => ({ key: `${session} ${keyOf(count)}`, ...count })),
          );
          expect(totals(taken)).toEqual(
            totals(
              all.map(({ session, ...rest }) => ({ key: `${session} ${keyOf(rest)}`, ...rest })),
            ),
          );
          const detailed = taken.filter(({ message }) => message !== "(overflow)");
          expect(detailed.length).toBeLessThanOrEqual(keys);
          expect(counters.take().size).toBe(0);
        },
      ),
    );
  });
});

describe("a session that does not take them", () => {
  test("[S-244] an append that hangs holds up no other session and is not repeated", async () => {
    const hang = createDeferred();
    const appended: [SessionId, number][] = [];
    const { diagnostics } = openDiagnostics({
      append: async (sessionId, counts) => {
        appended.push([sessionId, counts[0]?.count ?? 0]);
        if (sessionId === A) await hang.promise;
      },
    });
    diagnostics.note(A, "p", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(100);
    diagnostics.note(A, "p", "event_drop", "full");
    diagnostics.note(B, "p", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(1000);
    expect(appended).toEqual([
      [A, 1],
      [B, 1],
    ]);
    hang.resolve();
    await vi.advanceTimersByTimeAsync(100);
    expect(appended.slice(2)).toEqual([[A, 1]]);
  });

  test("[S-244] what it refused is kept, without a timer, and comes with the next news", async () => {
    const taken: number[] = [];
    let refuses = true;
    const { diagnostics } = openDiagnostics({
      append: async (_, counts) => {
        if (refuses) throw new Error("no space left");
        taken.push(...counts.map(({ count }) => count));
      },
    });
    diagnostics.note(A, "p", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(100);
    expect(vi.getTimerCount()).toBe(0);
    refuses = false;
    diagnostics.note(A, "p", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(100);
    expect(taken).toEqual([2]);
  });
});

describe("the end", () => {
  test("[S-244] a session that hangs does not keep the drain from the others", async () => {
    const appended: SessionId[] = [];
    const { diagnostics, incomplete } = openDiagnostics({
      append: (sessionId) => {
        appended.push(sessionId);
        return sessionId === A ? new Promise(() => undefined) : Promise.resolve();
      },
    });
    diagnostics.note(A, "hangs", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(400);
    diagnostics.note(B, "fine", "event_drop", "full");
    const drained = diagnostics.drain();
    await vi.advanceTimersByTimeAsync(5_000);
    await drained;
    expect(appended).toEqual([A, B]);
    expect(incomplete).toEqual(["hangs"]);
  });

  test("[S-244] a drain records at once what is counted, and nothing after it", async () => {
    const { diagnostics, appended, incomplete } = openDiagnostics();
    diagnostics.note(A, "p", "event_drop", "full");
    await diagnostics.drain();
    diagnostics.note(A, "p", "event_drop", "full");
    await vi.advanceTimersByTimeAsync(1000);
    expect(appended).toHaveLength(1);
    expect(incomplete).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("[S-244] a drain gives up after 5 s and names the plugins whose counts were lost", async () => {
    const { diagnostics, incomplete } = openDiagnostics({
      append: (sessionId) =>
        sessionId === A ? new Promise(() => undefined) : Promise.reject(new Error("foreign")),
    });
    diagnostics.note(A, "hangs", "event_drop", "full");
    diagnostics.note(B, "refused", "event_drop", "full");
    let over = false;
    const drained = diagnostics.drain().then(() => {
      over = true;
    });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await drained;
    expect(incomplete.sort()).toEqual(["hangs", "refused"]);
  });
});
