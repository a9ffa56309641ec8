import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { recentFrom, unansweredFrom } from "../../../../kernel/src/run/keep-recent.ts";

type Role = "user" | "assistant" | "tool";
const message = fc.record({
  role: fc.constantFrom<Role>("user", "assistant"),
  calls: fc.boolean(),
  bytes: fc.nat(500),
});

/** A conversation in which each assistant message may be followed by its results. */
const conversation = fc
  .array(message, { maxLength: 30 })
  .map((entries) =>
    entries.flatMap(({ role, calls, bytes }, index) => [
      { role, seq: index + 10, byteLength: bytes },
      ...(role === "assistant" && calls
        ? [{ role: "tool" as const, seq: index + 10, byteLength: bytes * 2 }]
        : []),
    ]),
  );

describe("the messages that stay beside a summary", () => {
  test("[S-221] begin with a whole group, fit, and leave out no group that would fit too", () => {
    fc.assert(
      fc.property(conversation, fc.nat(4000), (entries, room) => {
        const from = recentFrom(entries, entries, entries.length, room);
        const size = (start: number) =>
          entries.slice(start).reduce((sum, { byteLength }) => sum + byteLength, 0);
        expect(entries[from]?.role).not.toBe("tool");
        expect(size(from)).toBeLessThanOrEqual(room);
        const before = entries.findLastIndex(({ role }, index) => index < from && role !== "tool");
        if (before >= 0) expect(size(before)).toBeGreaterThan(room);
      }),
    );
  });

  test("[S-221] are none when the newest group is too large", () => {
    const entries = [
      { role: "user" as const, seq: 1, byteLength: 1 },
      { role: "assistant" as const, seq: 2, byteLength: 10 },
      { role: "tool" as const, seq: 2, byteLength: 100 },
    ];
    expect(recentFrom(entries, entries, 3, 109)).toBe(3);
    expect(recentFrom(entries, entries, 3, 110)).toBe(1);
  });

  test("[S-221] never hold an earlier summary", () => {
    const entries = [
      { role: "user" as const, seq: 0, byteLength: 1 },
      { role: "user" as const, seq: 5, byteLength: 1 },
    ];
    expect(recentFrom(entries, entries, 2, 1000)).toBe(1);
  });
});

describe("what nobody has answered", () => {
  const user = (seq: number) => ({ role: "user" as const, seq, byteLength: 1 });
  const assistant = (seq: number) => ({ role: "assistant" as const, seq, byteLength: 1 });

  test.for([
    {
      title: "what was said since the run began",
      entries: [user(1), assistant(2), user(5), user(6)],
      from: 2,
    },
    { title: "nothing behind an answer", entries: [user(5), assistant(6)], from: 2 },
    { title: "nothing of earlier runs", entries: [user(1), user(2), user(5)], from: 2 },
    { title: "no summary", entries: [{ ...user(0) }], from: 1 },
    { title: "nothing of nothing", entries: [], from: 0 },
  ])("is $title", ({ entries, from }) => {
    expect(unansweredFrom(entries, entries, 4)).toBe(from);
  });
});
