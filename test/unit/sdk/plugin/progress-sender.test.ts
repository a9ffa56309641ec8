import { PassThrough, Writable } from "node:stream";
import { definePlugin, type ProgressDelta, type ToolInvocation } from "@cookie-agent/sdk/plugin";
import { CookieError, ToolsCall, ToolsProgressAck } from "@cookie-agent/sdk/protocol";
import { Connection, createLineTransport } from "@cookie-agent/sdk/rpc";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { piecesOf } from "../../../../sdk/src/plugin/output-piece.ts";
import { ProgressSender } from "../../../../sdk/src/plugin/progress-sender.ts";
import { splitDelta } from "../../../../sdk/src/plugin/split-delta.ts";
import { callParams, ID, initializeParams } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

const KIB = 1024;

function pluginThat(call: (invocation: ToolInvocation) => Promise<void>) {
  return definePlugin({
    name: "echo",
    version: "1.0.0",
    tools: {
      t: {
        description: "d",
        parameters: { type: "object" },
        permissionName: "t",
        call: async (invocation) => {
          await call(invocation);
          return { streamed: true };
        },
      },
    },
  });
}

describe("splitting", () => {
  test("[E-100] [E-101] deltas keep every limit, lose nothing and split no character", () => {
    const text = fc
      .tuple(fc.string({ unit: "grapheme", maxLength: 20 }), fc.nat({ max: 9000 }))
      .map(([unit, times]) => unit.repeat(times));
    const output = fc.array(fc.record({ stream: fc.constantFrom("stdout", "stderr"), text }), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(output, (chunks) => {
        const deltas = splitDelta({}, piecesOf(chunks));
        const sent = { stdout: "", stderr: "" };
        for (const { members, byteLength } of deltas) {
          const parts = members.output ?? [];
          expect(parts.length).toBeLessThanOrEqual(8);
          const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part.text ?? ""), 0);
          expect(bytes).toBe(byteLength);
          expect(bytes).toBeLessThanOrEqual(64 * KIB);
          for (const part of parts) sent[part.stream as "stdout"] += part.text ?? "";
        }
        for (const stream of ["stdout", "stderr"] as const) {
          const given = chunks.filter((c) => c.stream === stream).map((c) => c.text);
          expect(sent[stream] === given.join("")).toBe(true);
        }
      }),
      { numRuns: 50 },
    );
  });

  test("[E-100] news goes with the first delta and is cut at 1 KiB", () => {
    const deltas = splitDelta(
      { message: "é".repeat(KIB), display: "shown" },
      piecesOf("x".repeat(100 * KIB)),
    );
    expect(deltas.map((delta) => delta.byteLength)).toEqual([64 * KIB, 36 * KIB]);
    expect(Buffer.byteLength(deltas[0]?.members.message ?? "")).toBe(KIB);
    expect(deltas[0]?.members.display).toBe("shown");
    expect(deltas[1]?.members).not.toHaveProperty("message");
  });

  test.for([undefined, "", [], new Uint8Array(0)] satisfies ProgressDelta["output"][])(
    "%j sends nothing",
    (output) => {
      expect(splitDelta({}, piecesOf(output))).toEqual([]);
    },
  );
});

describe("bytes", () => {
  const { capabilities } = initializeParams();
  const raw = { capabilities: { ...capabilities, raw_output: true } };
  const euro = Buffer.from("€");

  test("[E-016] [E-100] go raw, in deltas within the limits, where the kernel takes them", async () => {
    const chunk = fc.tuple(fc.constantFrom("out", "err", undefined), fc.nat({ max: 700 * KIB }));
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 12 }), (chunks) => {
        const pieces = chunks.map(([stream, byteLength], n) => ({
          stream,
          data: Buffer.alloc(byteLength, n + 1),
        }));
        const sent = new Map<string | undefined, Buffer[]>();
        for (const { members, byteLength, raw: parts = [] } of splitDelta({}, pieces)) {
          const output = members.output ?? [];
          expect(output.length).toBeLessThanOrEqual(8);
          expect(byteLength).toBeLessThanOrEqual(512 * KIB);
          let bytes = Buffer.concat(parts);
          for (const { stream, byte_length: length = 0 } of output) {
            sent.set(stream, [...(sent.get(stream) ?? []), bytes.subarray(0, length)]);
            bytes = bytes.subarray(length);
          }
          expect(bytes.length).toBe(0);
        }
        for (const [stream, parts] of sent) {
          const given = pieces.filter((piece) => piece.stream === stream).map(({ data }) => data);
          expect(Buffer.concat(parts).equals(Buffer.concat(given))).toBe(true);
        }
      }),
      { numRuns: 20 },
    );
  });

  test("[E-016] are sent as they were given, beside text", async () => {
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(async ({ progress }) => {
        await progress({ output: euro.subarray(0, 2) });
        const mixed = [
          { stream: "a", bytes: euro.subarray(2) },
          { stream: "a", text: "t" },
        ];
        await progress({ output: mixed });
      }),
      { initialize: raw },
    );
    expect(await kernel.request(ToolsCall, callParams("t", {}))).toEqual({ streamed: true });
    expect(progress).toEqual([
      { invocation_id: ID, output: [{ byte_length: 2 }], raw: euro.subarray(0, 2) },
      {
        invocation_id: ID,
        output: [
          { stream: "a", byte_length: 1 },
          { stream: "a", text: "t" },
        ],
        raw: euro.subarray(2),
      },
    ]);
    await stop();
  });

  test("[E-016] [E-101] go as text where it does not, no character split, the last one ended", async () => {
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(async ({ progress }) => {
        await progress({ output: euro.subarray(0, 2) });
        await progress({ output: [{ stream: "a", bytes: euro.subarray(0, 1) }] });
        await progress({ output: euro.subarray(2) });
        await progress({ output: "text" });
        await progress({ output: Buffer.from([0x61, 0xff, 0xf0, 0x9f]) });
      }),
    );
    expect(await kernel.request(ToolsCall, callParams("t", {}))).toEqual({ streamed: true });
    expect(progress.flatMap(({ output }) => output)).toEqual([
      { text: "€" },
      { text: "text" },
      { text: "a\ufffd" },
      { text: "\ufffd" },
      { stream: "a", text: "\ufffd" },
    ]);
    await stop();
  });
});

test("[E-016] bytes are needed until the stream took them, though what follows was given up", async () => {
  const order: string[] = [];
  let take = () => {};
  const output = new Writable({
    write: (_chunk, _encoding, done) => {
      take = () => {
        order.push("taken");
        done();
      };
    },
    writev: (_chunks, done) => output._write("", "utf8", done),
  });
  const connection = new Connection({
    transport: createLineTransport({ input: new PassThrough(), output, onBadLine: () => {} }),
    side: "plugin",
  });
  const sender = new ProgressSender({
    connection,
    invocationId: ID,
    signal: new AbortController().signal,
    windowBytes: 600 * KIB,
    raw: true,
  });
  const sent = sender
    .send({ output: Buffer.alloc(700 * KIB) })
    .then(() => void order.push("needed no more"));
  sender.giveUp();
  await new Promise((resolve) => setImmediate(resolve));
  take();
  await sent;
  connection.close();
  expect(order).toEqual(["taken", "needed no more"]);
});

describe("the window", () => {
  const limits = { frame_bytes: 4194304, progress_window_bytes: 100 * KIB };
  const ack = (bytes: number) => ({ invocation_id: ID as never, bytes });

  test("[E-103] a call holds at most the window unacknowledged and loses nothing", async () => {
    const total = 1000 * KIB;
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(({ progress }) => progress({ output: "x".repeat(total) })),
      { initialize: { limits } },
    );
    const received = () =>
      progress.reduce((sum, delta) => sum + (delta.output?.[0]?.text?.length ?? 0), 0);
    const call = kernel.request(ToolsCall, callParams("t", {}));
    let acknowledged = 0;
    let most = 0;
    while (acknowledged < total) {
      await expect.poll(received, { interval: 1 }).toBeGreaterThan(acknowledged);
      most = Math.max(most, received() - acknowledged);
      acknowledged = received();
      await kernel.notify(ToolsProgressAck, ack(acknowledged));
    }
    expect(await call).toEqual({ streamed: true });
    expect(received()).toBe(total);
    expect(most).toBeLessThanOrEqual(100 * KIB);
    await stop();
  });

  test("[E-103] a flooding call that waits does not hold up its neighbour", async () => {
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(async ({ args, progress }) => {
        if (args["flood"]) await progress({ output: "x".repeat(1000 * KIB) });
      }),
      { initialize: { limits } },
    );
    const controller = new AbortController();
    const flood = kernel
      .request(ToolsCall, callParams("t", { flood: true }), { signal: controller.signal })
      .catch(() => {});
    await expect.poll(() => progress.length).toBe(1);
    const neighbour = { invocation_id: "0198c0de-0000-7000-8000-000000000002" };
    expect(await kernel.request(ToolsCall, callParams("t", {}, neighbour))).toEqual({
      streamed: true,
    });
    controller.abort();
    await flood;
    kernel.close();
    await stop();
  });

  test("progress that is not awaited arrives in order and before the answer", async () => {
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(async ({ progress }) => {
        for (let n = 0; n < 50; n++) void progress({ output: `${n} `.repeat(2000) });
      }),
      { initialize: { limits } },
    );
    let acknowledged = 0;
    const call = kernel.request(ToolsCall, callParams("t", {}));
    let done = false;
    const finished = call.then(() => {
      done = true;
    });
    while (!done) {
      acknowledged = progress
        .flatMap((delta) => delta.output ?? [])
        .reduce((sum, part) => sum + (part.text?.length ?? 0), 0);
      await kernel.notify(ToolsProgressAck, ack(acknowledged));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await finished;
    const numbers = progress
      .flatMap((delta) => delta.output ?? [])
      .map((part) => Number.parseInt(part.text ?? "", 10));
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(new Set(numbers).size).toBe(50);
    await stop();
  });

  test("a delta that cannot be sent fails its call even when nobody awaits it", async () => {
    const { kernel, stop } = await serveInMemory(
      pluginThat(async ({ progress }) => {
        void progress({ output: [{ stream: "not a name", text: "x" }] });
      }),
    );
    await expect(kernel.request(ToolsCall, callParams("t", {}))).rejects.toMatchObject({
      code: "invalid_params",
    });
    await stop();
  });

  test("a failed call reports its error although nobody takes its output any more", async () => {
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(async ({ progress }) => {
        void progress({ output: "x".repeat(300 * KIB) });
        throw new CookieError("execution_failed", "it broke");
      }),
      { initialize: { limits } },
    );
    await expect(kernel.request(ToolsCall, callParams("t", {}))).rejects.toMatchObject({
      code: "execution_failed",
      message: "it broke",
    });
    const sent = progress.reduce((sum, delta) => sum + (delta.output?.[0]?.text?.length ?? 0), 0);
    expect(sent).toBeLessThanOrEqual(100 * KIB);
    await stop();
  });

  test("[E-102] nothing is sent after the answer", async () => {
    let late: ToolInvocation | undefined;
    const { kernel, progress, stop } = await serveInMemory(
      pluginThat(async (invocation) => {
        late = invocation;
      }),
    );
    await kernel.request(ToolsCall, callParams("t", {}));
    await late?.progress({ output: "late" });
    await stop();
    expect(progress).toEqual([]);
  });
});
