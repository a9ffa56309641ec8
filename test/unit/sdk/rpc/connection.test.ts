import {
  CookieError,
  fromPlugin,
  HostLog,
  notification,
  PluginPing,
  request,
  ToolsCall,
  ToolsProgress,
  toPlugin,
} from "@cookie-agent/sdk/protocol";
import { Connection, type ConnectionOptions, createMemoryPair } from "@cookie-agent/sdk/rpc";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { failureOf } from "../support/failure-of.ts";
import { callParams, ID } from "../support/plugin-params.ts";
import { openRawPeer } from "../support/raw-peer.ts";

const Add = request(
  "test/add",
  () => toPlugin({ a: z.number(), b: z.number() }),
  () => fromPlugin({ sum: z.number() }),
);
const Wait = request(
  "test/wait",
  () => toPlugin({}),
  () => fromPlugin({}),
);
const Ask = request(
  "host/ask",
  () => fromPlugin({ q: z.string() }),
  () => toPlugin({ answer: z.string() }),
);
const Tick = notification("host/tick", () => fromPlugin({ n: z.number() }));

function connectPair(
  plugin: Partial<ConnectionOptions> = {},
  kernel: Partial<ConnectionOptions> = {},
) {
  const [left, right] = createMemoryPair();
  return {
    kernel: new Connection({ transport: left, side: "kernel", ...kernel }),
    plugin: new Connection({ transport: right, side: "plugin", ...plugin }),
  };
}

function openRaw(side: "kernel" | "plugin") {
  const peer = openRawPeer();
  const problems: CookieError[] = [];
  const connection = new Connection({
    transport: peer.transport,
    side,
    onProtocolError: (problem) => problems.push(problem),
  });
  return { peer, connection, problems };
}

describe("frames", () => {
  test("[E-004] ids count up from 0, and an answer to id 0 settles its request", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const first = connection.request(PluginPing, {});
    const second = connection.request(PluginPing, {});
    expect([(await peer.next())["id"], (await peer.next())["id"]]).toEqual([0, 1]);
    peer.send({ jsonrpc: "2.0", id: 1, result: {} }, { jsonrpc: "2.0", id: 0, result: {} });
    expect(await Promise.all([first, second])).toEqual([{}, {}]);
  });

  test("[E-004] string ids are echoed verbatim and share nothing with our own ids", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.onRequest(Ask, ({ q }) => ({ answer: q }));
    connection.listen();
    const ping = connection.request(PluginPing, {});
    expect((await peer.next())["id"]).toBe(0);
    peer.send({ jsonrpc: "2.0", id: "0", method: "host/ask", params: { q: "why" } });
    expect(await peer.next()).toEqual({ jsonrpc: "2.0", id: "0", result: { answer: "why" } });
    peer.send({ jsonrpc: "2.0", id: 0, result: {} });
    expect(await ping).toEqual({});
  });

  test("[E-003] absent params mean an empty object and a result is always an object", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.onRequest(PluginPing, () => ({}));
    connection.listen();
    peer.send({ jsonrpc: "2.0", id: 0, method: "plugin/ping" });
    expect(await peer.next()).toEqual({ jsonrpc: "2.0", id: 0, result: {} });
  });

  test("[E-007] an unknown request is answered, an unknown notification ignored", async () => {
    const { peer, connection, problems } = openRaw("plugin");
    connection.listen();
    peer.send(
      { jsonrpc: "2.0", method: "plugin/unheard_of" },
      { jsonrpc: "2.0", id: 5, method: "plugin/unheard_of" },
    );
    expect(await peer.next()).toMatchObject({
      id: 5,
      error: { code: -32601, data: { code: "method_not_found" } },
    });
    expect(problems).toEqual([]);
  });

  test.for([
    ["a response without result and error", { jsonrpc: "2.0", id: 99 }],
    ["a null id", { jsonrpc: "2.0", id: null, method: "test/add" }],
    ["a cancellation without params", { jsonrpc: "2.0", method: "$/cancelRequest" }],
    ["a cancellation of null", { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: null } }],
  ] as const)("%s is reported and the connection goes on", async ([, frame]) => {
    const { peer, connection, problems } = openRaw("plugin");
    connection.onRequest(PluginPing, () => ({}));
    connection.listen();
    peer.send(frame, { jsonrpc: "2.0", id: 1, method: "plugin/ping" });
    expect(await peer.next()).toMatchObject({ id: 1, result: {} });
    expect(problems.map((problem) => problem.code)).toEqual(["protocol_violation"]);
    expect(peer.badLines).toEqual([]);
  });

  test("a second request under an id that still waits does not displace the first", async () => {
    const { peer, connection, problems } = openRaw("plugin");
    connection.onRequest(Add, ({ a, b }) => ({ sum: a + b }));
    connection.listen();
    const add = (a: number) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "test/add",
      params: { a, b: 0 },
    });
    peer.send(add(1), add(2));
    expect(await peer.next()).toMatchObject({ id: 1, result: { sum: 1 } });
    expect(problems).toHaveLength(1);
  });

  test("[E-008] what was sent before a response is applied before it", async () => {
    const { kernel, plugin } = connectPair();
    const seen: string[] = [];
    kernel.onNotification(Tick, ({ n }) => {
      seen.push(`tick ${n}`);
    });
    plugin.onRequest(Wait, async () => {
      for (let n = 0; n < 3; n++) await plugin.notify(Tick, { n });
      return {};
    });
    kernel.listen();
    plugin.listen();
    await kernel.request(Wait, {});
    expect(seen).toEqual(["tick 0", "tick 1", "tick 2"]);
  });

  test("[E-009] inbound requests are served while an own request is pending", async () => {
    const { kernel, plugin } = connectPair();
    kernel.onRequest(Ask, ({ q }) => ({ answer: `${q}!` }));
    plugin.onRequest(Wait, async () => {
      expect(await plugin.request(Ask, { q: "inner" })).toEqual({ answer: "inner!" });
      return {};
    });
    kernel.listen();
    plugin.listen();
    expect(await kernel.request(Wait, {})).toEqual({});
  });
});

describe("checking", () => {
  test("[E-006] unknown members from a plugin are rejected by name, _meta is allowed", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.onRequest(Ask, () => ({ answer: "" }));
    connection.listen();
    const ask = { jsonrpc: "2.0", method: "host/ask" };
    peer.send(
      { ...ask, id: 1, params: { q: "x", extra: 1 } },
      { ...ask, id: 2, params: { q: "x", _meta: {} } },
    );
    expect(await peer.next()).toMatchObject({
      id: 1,
      error: { code: -32602, data: { code: "invalid_params", field: "extra" } },
    });
    expect(await peer.next()).toMatchObject({ id: 2, result: { answer: "" } });
  });

  test("[E-006] a plugin ignores unknown members in what it receives", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.onRequest(Add, ({ a, b }) => ({ sum: a + b }));
    connection.listen();
    peer.send({
      jsonrpc: "2.0",
      future: true,
      id: 0,
      method: "test/add",
      params: { a: 1, b: 2, future: true },
    });
    expect(await peer.next()).toMatchObject({ result: { sum: 3 } });
  });

  test("invalid params are answered with the field and its problem, not with the value", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.onRequest(Add, ({ a, b }) => ({ sum: a + b }));
    connection.listen();
    peer.send({ jsonrpc: "2.0", id: 0, method: "test/add", params: { a: 1, b: "hunter2" } });
    const { error } = await peer.next();
    expect(error).toMatchObject({ code: -32602, data: { code: "invalid_params", field: "b" } });
    expect(JSON.stringify(error)).not.toContain("hunter2");
  });

  test("positional params are invalid params", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.onRequest(Add, ({ a, b }) => ({ sum: a + b }));
    connection.listen();
    peer.send({ jsonrpc: "2.0", id: 0, method: "test/add", params: [1, 2] });
    expect(await peer.next()).toMatchObject({ error: { code: -32602 } });
  });

  test("our own invalid params fail before anything is sent", async () => {
    const { kernel } = connectPair();
    kernel.listen();
    const params = JSON.parse('{"a":1}') as { a: number; b: number };
    expect(await failureOf(kernel.request(Add, params))).toMatchObject({
      code: "invalid_params",
      data: { field: "b" },
    });
  });

  test("an invalid result is a protocol violation of the peer", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const adding = connection.request(Add, { a: 1, b: 2 });
    peer.send({ jsonrpc: "2.0", id: 0, result: { sum: "3" } });
    expect(await failureOf(adding)).toMatchObject({
      code: "protocol_violation",
      data: { field: "sum" },
    });
  });

  test("an invalid result of our own handler never leaves", async () => {
    const { kernel, plugin } = connectPair();
    plugin.onRequest(Add, () => JSON.parse('{"sum":"x"}') as { sum: number });
    kernel.listen();
    plugin.listen();
    expect(await failureOf(kernel.request(Add, { a: 1, b: 2 }))).toMatchObject({
      code: "internal",
    });
  });

  test("an invalid notification is reported and the next one is handled", async () => {
    const { peer, connection, problems } = openRaw("kernel");
    const seen: number[] = [];
    connection.onNotification(Tick, ({ n }) => {
      seen.push(n);
    });
    connection.listen();
    const tick = { jsonrpc: "2.0", method: "host/tick" };
    peer.send({ ...tick, params: { n: "x" } }, { ...tick, params: { n: 2 } });
    await expect.poll(() => seen).toEqual([2]);
    expect(problems[0]).toMatchObject({ code: "invalid_params", data: { field: "n" } });
  });

  test.for(["sync", "async"])("a failing %s notification handler is reported", async (kind) => {
    const { peer, connection, problems } = openRaw("kernel");
    connection.onNotification(Tick, () => {
      if (kind === "sync") throw new Error("boom");
      return Promise.reject(new CookieError("storage_failed", "disk"));
    });
    connection.listen();
    peer.send({ jsonrpc: "2.0", method: "host/tick", params: { n: 1 } });
    await expect
      .poll(() => problems.map((problem) => problem.code))
      .toEqual([kind === "sync" ? "internal" : "storage_failed"]);
  });
});

describe("errors", () => {
  test("[E-171] an error travels with its number, its code and its data", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.onRequest(Wait, () => {
      throw new CookieError("progress_limit", "too much", { data: { limit: 8, code: "x" } });
    });
    connection.listen();
    peer.send({ jsonrpc: "2.0", id: 0, method: "test/wait" });
    expect(await peer.next()).toEqual({
      jsonrpc: "2.0",
      id: 0,
      error: { code: -31019, message: "too much", data: { limit: 8, code: "progress_limit" } },
    });
  });

  test("[E-171] a code of a plugin's own travels under -32000 and arrives as it is", async () => {
    const { kernel, plugin } = connectPair();
    plugin.onRequest(Wait, () => {
      throw new CookieError("quota_exceeded", "no more", { data: { left: 0 } });
    });
    kernel.listen();
    plugin.listen();
    const error = await failureOf(kernel.request(Wait, {}));
    expect(error).toMatchObject({ code: "quota_exceeded", message: "no more", data: { left: 0 } });
  });

  test("an unknown error becomes internal without its text and is reported on our side", async () => {
    const { peer, connection, problems } = openRaw("kernel");
    const bug = new Error("password is hunter2");
    connection.onRequest(Ask, () => {
      throw bug;
    });
    connection.listen();
    peer.send({ jsonrpc: "2.0", id: 0, method: "host/ask", params: { q: "" } });
    expect((await peer.next())["error"]).toEqual({
      code: -32603,
      message: "internal error",
      data: { code: "internal" },
    });
    expect(problems).toMatchObject([{ code: "internal", cause: bug }]);
  });

  test.for([
    [-32601, "method_not_found"],
    [-32602, "invalid_params"],
    [-32800, "cancelled"],
    [-31014, "execution_failed"],
    [-32000, "execution_failed"],
    [12345, "execution_failed"],
  ] as const)("[E-180] number %i without data is read as %s", async ([number, code]) => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const waiting = connection.request(Wait, {});
    peer.send({ jsonrpc: "2.0", id: 0, error: { code: number, message: "no" } });
    expect((await failureOf(waiting)).code).toBe(code);
  });

  test("[E-172] messages are one line of 1 KiB, of tool calls 4096 bytes with breaks", async () => {
    const { peer, connection } = openRaw("plugin");
    const fail = () => {
      throw new CookieError("execution_failed", `a\nb\u001b[31m${"é".repeat(4000)}`);
    };
    connection.onRequest(Wait, fail);
    connection.onRequest(ToolsCall, fail);
    connection.listen();
    peer.send({ jsonrpc: "2.0", id: 0, method: "test/wait" });
    peer.send({ jsonrpc: "2.0", id: 1, method: ToolsCall.name, params: callParams("t", {}) });
    const texts: string[] = [];
    for (let i = 0; i < 2; i++) {
      const { error } = (await peer.next()) as { error: { message: string } };
      texts.push(error.message);
    }
    expect(texts.map((text) => text.slice(0, 4))).toEqual(["a b ", "a\nb "]);
    expect(texts.map((text) => Buffer.byteLength(text))).toEqual([1024, 4096]);
  });

  test("[T-047] [E-002] a request over the cap fails at its sender and the next one works", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.listen();
    const big = connection.request(Ask, { q: "x".repeat(5 * 1024 * 1024) });
    expect((await failureOf(big)).code).toBe("resource_limit");
    const small = connection.request(Ask, { q: "x" });
    const { id } = await peer.next();
    peer.send({ jsonrpc: "2.0", id, result: { answer: "y" } });
    expect(await small).toEqual({ answer: "y" });
  });

  test("[T-047] [E-002] a notification over the cap fails at its sender", async () => {
    const { connection } = openRaw("plugin");
    connection.listen();
    const big = connection.notify(ToolsProgress, {
      invocation_id: ID as never,
      output: [{ text: "x".repeat(5 * 1024 * 1024) }],
    });
    expect((await failureOf(big)).code).toBe("resource_limit");
  });
});

describe("deadlines and cancellation", () => {
  test("a passed deadline fails the request and cancels it at the peer", async () => {
    const { kernel, plugin } = connectPair();
    const cancelled = new Promise<void>((resolve) => {
      plugin.onRequest(Wait, async (_params, signal) => {
        await new Promise((r) => signal.addEventListener("abort", r));
        resolve();
        return {};
      });
    });
    kernel.listen();
    plugin.listen();
    expect((await failureOf(kernel.request(Wait, {}, { timeoutMs: 5 }))).code).toBe("timeout");
    await cancelled;
  });

  test("[E-105] an abort cancels the request at the peer and fails it with cancelled", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const controller = new AbortController();
    const waiting = connection.request(Wait, {}, { signal: controller.signal });
    await peer.next();
    controller.abort();
    expect((await failureOf(waiting)).code).toBe("cancelled");
    expect(await peer.next()).toEqual({
      jsonrpc: "2.0",
      method: "$/cancelRequest",
      params: { id: 0 },
    });
  });

  test("a signal that has aborted already sends nothing", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const waiting = connection.request(Wait, {}, { signal: AbortSignal.abort() });
    expect((await failureOf(waiting)).code).toBe("cancelled");
    const ping = connection.request(PluginPing, {});
    expect(await peer.next()).toMatchObject({ id: 0, method: "plugin/ping" });
    peer.send({ jsonrpc: "2.0", id: 0, result: {} });
    await ping;
  });

  test("[E-105] within the grace a result still counts", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const controller = new AbortController();
    const options = { signal: controller.signal, cancelGraceMs: 60_000 };
    const adding = connection.request(Add, { a: 1, b: 2 }, options);
    controller.abort();
    peer.send({ jsonrpc: "2.0", id: 0, result: { sum: 3 } });
    expect(await adding).toEqual({ sum: 3 });
  });

  test("[E-105] within the grace an error ends the wait with the reason of the interruption", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const waiting = connection.request(Wait, {}, { timeoutMs: 1, cancelGraceMs: 60_000 });
    await peer.next();
    expect(await peer.next()).toMatchObject({ method: "$/cancelRequest" });
    peer.send({ jsonrpc: "2.0", id: 0, error: { code: -32800, message: "cancelled" } });
    expect((await failureOf(waiting)).code).toBe("timeout");
  });

  test("[E-105] after the grace the request is abandoned and a late answer is dropped", async () => {
    const { peer, connection, problems } = openRaw("kernel");
    connection.listen();
    const waiting = connection.request(Wait, {}, { timeoutMs: 1, cancelGraceMs: 1 });
    expect((await failureOf(waiting)).code).toBe("timeout");
    const ping = connection.request(PluginPing, {});
    peer.send({ jsonrpc: "2.0", id: 0, result: {} }, { jsonrpc: "2.0", id: 1, result: {} });
    expect(await ping).toEqual({});
    expect(problems).toEqual([]);
  });

  test("[E-012] a handler sees a cancellation that came in one read with its request", async () => {
    const { peer, connection } = openRaw("plugin");
    connection.onRequest(Wait, (_params, signal) => {
      if (signal.aborted) throw new CookieError("cancelled", "cancelled");
      return {};
    });
    connection.listen();
    peer.send(
      { jsonrpc: "2.0", id: 0, method: "test/wait" },
      { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 0 } },
    );
    expect(await peer.next()).toMatchObject({ error: { code: -32800 } });
  });
});

describe("the end of a connection", () => {
  test.for([
    ["kernel", "plugin_crashed"],
    ["plugin", "shutting_down"],
    ["daemon", "shutting_down"],
    ["client", "closed"],
  ] as const)("pending and later requests of side %s fail with %s", async ([side, code]) => {
    const [left, right] = createMemoryPair();
    let closes = 0;
    const onClose = () => {
      closes += 1;
    };
    const connection = new Connection({ transport: left, side, onClose });
    connection.listen();
    const pending = connection.request(Wait, {});
    const withDeadline = connection.request(Wait, {}, { timeoutMs: 60_000, cancelGraceMs: 10 });
    right.close();
    expect((await failureOf(pending)).code).toBe(code);
    expect((await failureOf(withDeadline)).code).toBe(code);
    await connection.closed;
    expect((await failureOf(connection.request(Wait, {}))).code).toBe(code);
    expect(closes).toBe(1);
  });

  test("what is being served is aborted, and a notification is dropped in silence", async () => {
    const { kernel, plugin } = connectPair();
    const served = new Promise<AbortSignal>((resolve) => {
      plugin.onRequest(Wait, (_params, signal) => {
        resolve(signal);
        return new Promise(() => {});
      });
    });
    kernel.listen();
    plugin.listen();
    const waiting = kernel.request(Wait, {});
    const signal = await served;
    kernel.close();
    await plugin.closed;
    expect(signal.aborted).toBe(true);
    expect((await failureOf(waiting)).code).toBe("plugin_crashed");
    await plugin.notify(HostLog, { level: "info", message: "too late" });
  });

  test("[E-008] frames that arrived before the end are still handled", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const ping = connection.request(PluginPing, {});
    const rest = connection.request(PluginPing, {});
    peer.input.end('{"jsonrpc":"2.0","id":0,"result":{}}');
    expect(await ping).toEqual({});
    expect((await failureOf(rest)).code).toBe("plugin_crashed");
  });

  test("[E-008] a peer that stops listening is still heard to its last frame", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const ping = connection.request(PluginPing, {});
    peer.output.destroy();
    await new Promise<void>((resolve) => peer.transport.writer.onClose(() => resolve()));
    peer.input.end('{"jsonrpc":"2.0","id":0,"result":{}}\n');
    expect(await ping).toEqual({});
    await connection.closed;
  });

  test("a peer that stops listening but goes on living is given up", async () => {
    const { peer, connection } = openRaw("kernel");
    connection.listen();
    const ping = connection.request(PluginPing, {});
    peer.output.destroy();
    expect((await failureOf(ping)).code).toBe("plugin_crashed");
  });

  test("[E-012] a slow notification handler stops the reading of its pipe", async () => {
    const { peer, connection } = openRaw("kernel");
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let seen = 0;
    connection.onNotification(Tick, async () => {
      await gate;
      seen += 1;
    });
    connection.listen();
    const frames = Array.from({ length: 300 }, (_, n) => ({
      jsonrpc: "2.0",
      method: "host/tick",
      params: { n },
    }));
    peer.send(...frames);
    await expect.poll(() => peer.input.isPaused()).toBe(true);
    release();
    await expect.poll(() => seen).toBe(300);
    expect(peer.input.isPaused()).toBe(false);
  });
});
