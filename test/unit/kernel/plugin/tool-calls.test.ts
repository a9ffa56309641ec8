import { CookieError } from "@cookie-agent/sdk/protocol";
import { afterEach, describe, expect, test, vi } from "vitest";
import { isAlive } from "../../../support/is-alive.ts";
import { bytesOf, callOf, entryFor, eventually, never, openHost } from "./open-host.ts";

const MIB = 1024 * 1024;
/** For calls that are to end by the plugin's own answer, however long that takes. */
const PATIENT = { cancelCleanupMs: 60_000 };

afterEach(() => {
  vi.useRealTimers();
});

describe("progress", () => {
  test("[E-008] [E-094] everything streamed before the answer is stored before the call settles", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    let stored = 0;
    const call = callOf(
      "flood",
      { bytes: 20_000, chunk_bytes: 1000 },
      {
        onProgress: async (delta) => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          for (const { data } of delta.output) stored += bytesOf(data).length;
        },
      },
    );
    expect(await host.call("flood", call, never())).toMatchObject({ streamed: true });
    expect(stored).toBe(20_000);
  });

  test("[E-103] a flood that heeds acknowledgements arrives whole, acknowledged at least every 256 KiB", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    const call = callOf("flood", { bytes: 16 * MIB, heed_acks: true });
    const { metadata } = await host.call("flood", call, never());
    expect(call.text().length).toBe(16 * MIB);
    expect(metadata?.["acked"]).toBeGreaterThanOrEqual(15 * MIB);
  });

  test("[E-103] in a process of its own a flood without regard for acknowledgements is throttled, not lost", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    let stored = 0;
    let waiting = 0;
    let most = 0;
    const call = callOf(
      "flood",
      { bytes: 24 * MIB },
      {
        onProgress: async (delta) => {
          waiting += 1;
          most = Math.max(most, waiting);
          await new Promise((resolve) => setTimeout(resolve, 1));
          waiting -= 1;
          for (const { data } of delta.output) stored += bytesOf(data).length;
        },
      },
    );
    await host.call("flood", call, never());
    expect({ stored, most }).toEqual({ stored: 24 * MIB, most: 1 });
  });

  test.for([
    ["an undeclared stream", { bytes: 10, stream: "sideways" }],
    ["more than 8 chunks", { bytes: 10, chunks: 9 }],
    ["more than 64 KiB of text", { bytes: 65_537, chunk_bytes: 65_537 }],
  ] as const)(
    "[T-032] [T-033] [S-117] [E-100] [E-102] a delta with %s fails its call",
    async ([, args]) => {
      const { host } = await openHost({ entries: [entryFor("flood")] });
      const call = callOf("flood", args);
      await expect(host.call("flood", call, never())).rejects.toMatchObject({
        code: "progress_limit",
      });
      expect(call.text()).toBe("");
    },
  );

  test("[E-093] text after streaming fails the call and the streamed output is kept", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    const call = callOf("flood", { bytes: 10, resend: true });
    await expect(host.call("flood", call, never())).rejects.toMatchObject({
      code: "protocol_violation",
    });
    expect(call.text()).toBe("zzzzzzzzzz");
  });

  test("[T-033] [S-117] [E-102] a delta after the answer is dropped with a diagnostic", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    const call = callOf("flood", { bytes: 10, late: true });
    await host.call("flood", call, never());
    await eventually(() => host.status()[0]?.diagnostics.length === 1);
    expect(call.text()).toBe("zzzzzzzzzz");
  });

  test("[T-034] [S-117] [E-100] messages stop at 64 KiB per call without stopping the call", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    const call = callOf("tell", { messages: 100, text: "m".repeat(1024) });
    expect(await host.call("flood", call, never())).toEqual({ content: "told" });
    const messages = call.deltas.map(({ message }) => message?.length ?? 0);
    expect(messages.reduce((sum, length) => sum + length, 0)).toBe(64 * 1024);
  });

  test("[T-032] [S-117] [E-102] a message over 1 KiB fails its call", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    const call = callOf("tell", { messages: 3, text: "m".repeat(1025) });
    await expect(host.call("flood", call, never())).rejects.toMatchObject({
      code: "progress_limit",
      data: { discarded: { results: expect.any(Number) as number, progress: 3 } },
    });
    expect(call.deltas).toEqual([]);
  });

  test("[E-104] output that cannot be stored ends the call with the reason", async () => {
    const { host } = await openHost({ entries: [entryFor("flood")] });
    const call = callOf(
      "flood",
      { bytes: MIB },
      { onProgress: () => Promise.reject(new CookieError("resource_limit", "enough")) },
    );
    await expect(host.call("flood", call, never())).rejects.toMatchObject({
      code: "resource_limit",
    });
  });
});

describe("ending a call", () => {
  test("[T-042] [E-105] a cancelled call may report while it cleans up and is cancelled either way", async () => {
    const { host } = await openHost({ entries: [entryFor("slow")], limits: PATIENT });
    const stop = new AbortController();
    const call = callOf("wait_ms", { ms: 600_000 });
    const outcome = host.call("slow", call, stop.signal).catch((error: unknown) => error);
    await eventually(() => host.status()[0]?.in_flight === 1);
    stop.abort();
    expect(await outcome).toMatchObject({ code: "cancelled" });
    expect(call.text()).toBe("cleaning up\n");
  });

  test("[T-042] [B154] a result that comes after the cancel is thrown away and counted", async () => {
    const { host } = await openHost({
      entries: [entryFor("deaf", { shutdownGraceMs: 100 })],
      limits: PATIENT,
    });
    const stop = new AbortController();
    const outcome = host.call("deaf", callOf("ignore_cancel", { ms: 600_000 }), stop.signal);
    await eventually(() => host.status()[0]?.in_flight === 1);
    stop.abort();
    await host.call("deaf", callOf("let_go"), never());
    await expect(outcome).rejects.toMatchObject({
      code: "cancelled",
      data: { discarded: { results: 1, progress: 0 } },
    });
  });

  test("[E-105] a call cancelled before it was sent never reaches the plugin", async () => {
    const { host } = await openHost({ entries: [entryFor("slow")] });
    const call = callOf("wait_ms", { ms: 1 });
    await expect(host.call("slow", call, AbortSignal.abort())).rejects.toMatchObject({
      code: "cancelled",
    });
    expect(host.status()).toMatchObject([{ state: "disconnected" }]);
  });

  test("[T-130] the time of a plugin's tool is tool_timeout_ms where it declares none", async () => {
    const { host } = await openHost({ entries: [entryFor("slow", { toolTimeoutMs: 50 })] });
    const timeoutMs = host.plugins()[0]?.tools[0]?.timeoutMs ?? null;
    expect(timeoutMs).toBe(50);
    const call = callOf("wait_ms", { ms: 60_000 }, { timeoutMs });
    await expect(host.call("slow", call, never())).rejects.toMatchObject({ code: "timeout" });
  });

  test("a call over its time is asked to stop and fails with timeout", async () => {
    const { host } = await openHost({ entries: [entryFor("slow")], limits: PATIENT });
    const call = callOf("wait_ms", { ms: 600_000 }, { timeoutMs: 50 });
    await expect(host.call("slow", call, never())).rejects.toMatchObject({ code: "timeout" });
    expect(call.text()).toBe("cleaning up\n");
  });

  test("[E-052] a thousand calls at once are all answered, each with its own", async () => {
    const { host } = await openHost({ entries: [entryFor("echo")] });
    const texts = Array.from({ length: 1000 }, (_, index) => `call ${index}`);
    const answers = await Promise.all(
      texts.map((text) => host.call("echo", callOf("echo", { text }), never())),
    );
    expect(answers.map(({ content }) => content)).toEqual(texts);
    expect(host.status()).toMatchObject([{ state: "connected", in_flight: 0, restarts: 0 }]);
  });

  test("[E-052] requests beyond max_in_flight wait in a queue and their time starts at dispatch", async () => {
    const { host } = await openHost({ entries: [entryFor("slow")], limits: PATIENT });
    const stop = new AbortController();
    const first = Array.from({ length: 8 }, () =>
      host.call("slow", callOf("wait_ms", { ms: 600_000 }), stop.signal),
    );
    await eventually(() => host.status()[0]?.in_flight === 8);
    // from here on the test says how the time of a call passes, and only while all of these wait
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const calls = Array.from({ length: 16 }, () =>
      host.call("slow", callOf("wait_ms", { ms: 1 }, { timeoutMs: 1000 }), never()),
    );
    await vi.advanceTimersByTimeAsync(10_000);
    stop.abort();
    await Promise.allSettled(first);
    const most = (await Promise.all(calls)).map(
      ({ content }) => (JSON.parse(content ?? "") as { most: number }).most,
    );
    expect(Math.max(...most)).toBe(8);
  });

  test("[E-062] [B154] a process of its own that keeps working on a given-up call is ended and comes back", async () => {
    const { host } = await openHost({
      entries: [entryFor("deaf", { shutdownGraceMs: 100 })],
      limits: { cancelCleanupMs: 50, deafAfterMs: 100 },
    });
    const { content } = await host.call("deaf", callOf("answer"), never());
    const stop = new AbortController();
    const outcome = host.call("deaf", callOf("ignore_cancel", { ms: 60_000 }), stop.signal);
    await eventually(() => host.status()[0]?.in_flight === 1);
    stop.abort();
    await expect(outcome).rejects.toMatchObject({ code: "cancelled" });
    await eventually(() => host.status()[0]?.pid === null);
    expect(isAlive(Number(content))).toBe(false);
    const again = await host.call("deaf", callOf("answer"), never());
    expect(again.content).not.toBe(content);
  });

  test("[E-182] a plugin that reads nothing while it works is given up at a cancel and ended, and comes back", async () => {
    const { host } = await openHost({
      entries: [entryFor("crash", { shutdownGraceMs: 100 })],
      limits: { cancelCleanupMs: 50, deafAfterMs: 100 },
    });
    const { content } = await host.call("crash", callOf("survive"), never());
    const stop = new AbortController();
    const outcome = host.call("crash", callOf("crash_now", { how: "block" }), stop.signal);
    await eventually(() => host.status()[0]?.in_flight === 1);
    stop.abort();
    await expect(outcome).rejects.toMatchObject({ code: "cancelled" });
    await eventually(() => host.status()[0]?.pid === null);
    expect(isAlive(Number(content))).toBe(false);
    expect((await host.call("crash", callOf("survive"), never())).content).not.toBe(content);
  });

  test("[E-062] an answer that comes before suspicion arises saves the process and is not delivered", async () => {
    const { host } = await openHost({
      entries: [entryFor("deaf", { shutdownGraceMs: 100 })],
      limits: { cancelCleanupMs: 20, deafAfterMs: 60_000 },
    });
    const { content } = await host.call("deaf", callOf("answer"), never());
    const late = host.call(
      "deaf",
      callOf("ignore_cancel", { ms: 600_000 }, { timeoutMs: 30 }),
      never(),
    );
    await expect(late).rejects.toMatchObject({ code: "timeout" });
    expect(host.status()[0]?.in_flight).toBe(1);
    await host.call("deaf", callOf("let_go"), never());
    await eventually(() => host.status()[0]?.in_flight === 0);
    expect((await host.call("deaf", callOf("answer"), never())).content).toBe(content);
  });
});

describe("standard input", () => {
  const bytes = (text: string) => Buffer.from(text);

  test("[E-106] input reaches a call that declared it, in order, until its end", async () => {
    const { host } = await openHost({ entries: [entryFor("stdin")] });
    const call = callOf("read_input", { interactive: true }, { params: { stdin: true } });
    const id = call.params.invocation_id;
    const answer = host.call("stdin", call, never());
    await eventually(() => host.status()[0]?.in_flight === 1);
    const large = "x".repeat(100_000);
    const writes = [
      host.stdin("stdin", id, bytes("a"), false),
      host.stdin("stdin", id, bytes(large), false),
      host.stdin("stdin", id, null, true),
    ];
    expect(await Promise.all(writes)).toEqual([true, true, true]);
    expect(await answer).toEqual({ content: `a${large}` });
    expect(await host.stdin("stdin", id, bytes("b"), false)).toBe(false);
  });

  test("[E-106] nothing is accepted after eof or for a call without input", async () => {
    const { host } = await openHost({ entries: [entryFor("stdin"), entryFor("slow")] });
    const call = callOf("read_input", { interactive: true }, { params: { stdin: true } });
    const answer = host.call("stdin", call, never());
    await eventually(() => host.status()[0]?.in_flight === 1);
    const id = call.params.invocation_id;
    const first = host.stdin("stdin", id, bytes("stop"), true);
    expect(await host.stdin("stdin", id, bytes("more"), false)).toBe(false);
    expect(await first).toBe(true);
    expect(await answer).toEqual({ content: "stop" });

    const deafEar = callOf("wait_ms", { ms: 600_000 });
    const stop = new AbortController();
    const waiting = host.call("slow", deafEar, stop.signal);
    await eventually(() => host.status()[1]?.in_flight === 1);
    expect(await host.stdin("slow", deafEar.params.invocation_id, bytes("x"), false)).toBe(false);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("bad lines", () => {
  const chat = (mode: string, bytes = 0) => callOf("chat", { mode, bytes });

  test.for([
    ["text and arrays", "noise", 0, 3],
    ["bytes that are not UTF-8", "latin1", 0, 1],
    ["a line over the limit", "giant_line", 6 * MIB, 1],
  ] as const)(
    "[B143] %s on stdout are skipped and the next line is served",
    async ([, mode, size, count]) => {
      const { host, logged } = await openHost({ entries: [entryFor("chatty")] });
      expect(await host.call("chatty", chat(mode, size), never())).toEqual({
        content: "still here",
      });
      expect(logged.filter((line) => line.startsWith("skipped a line"))).toHaveLength(count);
      expect(await host.call("chatty", chat("quiet"), never())).toEqual({ content: "still here" });
    },
  );

  test("[B143] a frame of one megabyte is served", async () => {
    const { host } = await openHost({ entries: [entryFor("chatty")] });
    const { content } = await host.call("chatty", chat("giant_frame", MIB), never());
    expect(content?.length).toBe(MIB);
  });

  test("[B146] a frame spread over several lines is never joined", async () => {
    const { host, logged } = await openHost({ entries: [entryFor("chatty")] });
    expect(await host.call("chatty", chat("pretty"), never())).toEqual({ content: "still here" });
    expect(logged.filter((line) => line.startsWith("skipped a line")).length).toBeGreaterThan(3);
  });

  test("twenty bad lines in ten seconds end the plugin", async () => {
    const { host } = await openHost({ entries: [entryFor("chatty")] });
    await expect(host.call("chatty", chat("too_many"), never())).rejects.toMatchObject({
      code: "plugin_crashed",
      message: expect.stringContaining("bad lines"),
    });
    expect(host.status()).toMatchObject([{ state: "failed" }]);
  });
});
