import type { ToolCallId, ToolProgress } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ProgressIntake,
  type ProgressIntakeOptions,
} from "../../../../kernel/src/plugin/progress-intake.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { bytesOf } from "./open-host.ts";

const invocation_id = createId<ToolCallId>();
const delta = (text: string, stream?: string): ToolProgress => ({
  invocation_id,
  output: [stream === undefined ? { text } : { stream, text }],
});

function open(options: Partial<ProgressIntakeOptions> = {}) {
  const stored: { stream: string | null; text: string }[] = [];
  const acks: number[] = [];
  const failures: string[] = [];
  const intake = new ProgressIntake({
    output: { mode: "single" },
    windowBytes: null,
    ackBytes: 128 * 1024,
    capture: async ({ output }) => {
      await Promise.resolve();
      for (const { stream, data } of output)
        stored.push({ stream, text: bytesOf(data).toString() });
    },
    acknowledge: (bytes) => acks.push(bytes),
    fail: (error) => failures.push(error.code),
    ...options,
  });
  return { intake, stored, acks, failures };
}

describe("ProgressIntake", () => {
  test("[E-100] whatever the timing, each stream is stored whole and in order", async () => {
    const chunk = fc.record({
      stream: fc.constantFrom("out", "err"),
      text: fc.string({ unit: "grapheme" }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(chunk, fc.boolean())), async (chunks) => {
        const { intake, stored } = open({ output: { mode: "named", streams: ["out", "err"] } });
        for (const [{ stream, text }, pause] of chunks) {
          void intake.accept(delta(text, stream));
          if (pause) await Promise.resolve();
        }
        await intake.finish();
        for (const name of ["out", "err"]) {
          const expected = chunks.filter(([c]) => c.stream === name).map(([c]) => c.text);
          const actual = stored.filter(({ stream }) => stream === name).map(({ text }) => text);
          expect(actual.join("")).toBe(expected.join(""));
        }
      }),
    );
  });

  test("[E-103] acknowledgements are cumulative and at most 256 KiB apart", async () => {
    const { intake, acks } = open();
    for (let sent = 0; sent < 32; sent += 1) await intake.accept(delta("x".repeat(65_536)));
    await intake.finish();
    const steps = acks.map((bytes, index) => bytes - (acks[index - 1] ?? 0));
    expect(Math.max(...steps)).toBeLessThanOrEqual(256 * 1024);
    expect(acks.at(-1)).toBe(32 * 65_536);
  });

  test("[E-103] more than the window unacknowledged fails, exactly the window does not", async () => {
    const blocked = { windowBytes: 1024, capture: () => new Promise(() => {}) };
    const { intake, failures } = open(blocked);
    void intake.accept(delta("x".repeat(1024)));
    expect(failures).toEqual([]);
    void intake.accept(delta("x"));
    expect(failures).toEqual(["progress_limit"]);
  });

  test("[E-102] after a failure nothing more is stored and it is told once", async () => {
    const { intake, stored, failures } = open();
    await intake.accept(delta("good"));
    void intake.accept(delta("bad", "undeclared"));
    void intake.accept(delta("bad", "undeclared"));
    void intake.accept(delta("late"));
    await intake.finish();
    expect(stored.map(({ text }) => text)).toEqual(["good"]);
    expect(failures).toEqual(["progress_limit"]);
    expect(intake.closed).toBe(true);
  });

  test.for(["message", "display"] as const)(
    "[T-032] [E-102] a %s of 1 KiB is taken, of more the delta is refused whole",
    async (member) => {
      const { intake, stored, failures } = open();
      await intake.accept({ ...delta("a"), [member]: "é".repeat(512) });
      expect(failures).toEqual([]);
      await intake.accept({ ...delta("b"), [member]: "é".repeat(513) });
      expect(failures).toEqual(["progress_limit"]);
      expect(stored.map(({ text }) => text)).toEqual(["a"]);
      expect(intake.discarded).toBe(1);
    },
  );

  test("[T-034] [E-100] presentation is cut at 64 KiB per call, between characters, and output goes on", async () => {
    const shown: string[] = [];
    let captured = 0;
    const { intake, failures } = open({
      capture: async ({ message = "", display = "", output }) => {
        shown.push(message, display);
        for (const { data } of output) captured += bytesOf(data).length;
      },
    });
    for (let sent = 0; sent < 50; sent += 1) {
      const news = { message: `m${"é".repeat(500)}`, display: "d".repeat(1000) };
      await intake.accept({ ...delta("x"), ...news });
    }
    expect(captured).toBe(50);
    const bytes = Buffer.byteLength(shown.join(""));
    expect([bytes > 64 * 1024 - 4, bytes <= 64 * 1024, failures]).toEqual([true, true, []]);
    expect(shown.join("")).not.toContain("\ufffd");
  });

  test("[E-100] a tool that cannot stream fails with its first output, messages are fine", async () => {
    const { intake, failures } = open({ output: null });
    await intake.accept({ invocation_id, message: "working" });
    expect(failures).toEqual([]);
    void intake.accept(delta("x"));
    expect(failures).toEqual(["progress_limit"]);
  });

  test("output that waits is merged up to the size of one delta", async () => {
    const { intake, stored } = open();
    for (let n = 0; n < 1000; n += 1) void intake.accept(delta("ab"));
    await intake.finish();
    expect(stored.length).toBeLessThan(5);
    expect(stored.map(({ text }) => text).join("")).toBe("ab".repeat(1000));
  });

  test("[E-016] [E-100] chunks share the raw bytes in their order, between text", async () => {
    const { intake, stored } = open({ output: { mode: "named", streams: ["out", "err"] } });
    const output = [
      { stream: "out", byte_length: 3 },
      { stream: "err", text: "t" },
      { stream: "err", byte_length: 0 },
      { stream: "out", byte_length: 4 },
    ];
    await intake.accept({ invocation_id, output }, [Buffer.from("ab"), Buffer.from("cdefg")]);
    expect(stored).toEqual([
      { stream: "out", text: "abc" },
      { stream: "err", text: "t" },
      { stream: "err", text: "" },
      { stream: "out", text: "defg" },
    ]);
  });

  test.for([
    ["fewer than it shares out", 3, 2, "protocol_violation"],
    ["more than it shares out", 2, 3, "protocol_violation"],
    ["none of those it shares out", 2, 0, "protocol_violation"],
    ["more than a delta may hold", 524_289, 524_289, "progress_limit"],
  ] as const)(
    "[E-016] [E-102] a delta that brings %s fails",
    async ([, byte_length, byteLength, code]) => {
      const { intake, stored, failures } = open();
      const raw = byteLength === 0 ? undefined : [Buffer.alloc(byteLength)];
      void intake.accept({ invocation_id, output: [{ byte_length }] }, raw);
      await intake.finish();
      expect([stored, failures]).toEqual([[], [code]]);
    },
  );

  test("[E-016] [E-103] raw bytes count for window and acknowledgement as they came", async () => {
    const { intake, acks, failures } = open({ windowBytes: 600_000, ackBytes: 400_000 });
    const raw = (byteLength: number) =>
      intake.accept({ invocation_id, output: [{ byte_length: byteLength }] }, [
        Buffer.alloc(byteLength, 0xff),
      ]);
    await raw(500_000);
    expect(acks).toEqual([500_000]);
    void raw(300_000);
    void raw(300_000);
    expect(failures).toEqual([]);
    void raw(1);
    expect(failures).toEqual(["progress_limit"]);
  });

  test("raw bytes that wait are joined and stay what they were", async () => {
    const { intake, stored } = open();
    for (let n = 0; n < 1000; n += 1) {
      void intake.accept({ invocation_id, output: [{ byte_length: 2 }] }, [Buffer.from("ab")]);
    }
    await intake.finish();
    expect(stored.length).toBeLessThan(5);
    expect(stored.map(({ text }) => text).join("")).toBe("ab".repeat(1000));
  });
});
