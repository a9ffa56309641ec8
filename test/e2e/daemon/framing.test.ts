import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { openDaemon } from "../../support/open-daemon.ts";
import { openRaw } from "../../support/raw-websocket.ts";

const MIB = 1024 * 1024;

describe("what is no message of the protocol", () => {
  test("[D-010] [D-011] is answered with the id null, and the connection goes on", async () => {
    const socket = await openRaw(await openDaemon());
    await socket.greet();
    await socket.next();
    const parse = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "parse error" } };
    const invalid = (detail: RegExp) => ({
      jsonrpc: "2.0",
      id: null,
      error: {
        code: -32600,
        message: "invalid request",
        data: { detail: expect.stringMatching(detail) },
      },
    });
    const good = { jsonrpc: "2.0", id: 1, method: "plugins.status" };
    for (const [text, answer] of [
      ["", parse],
      ["{", parse],
      ["\u0000", parse],
      ['{"jsonrpc":"2.0","id":1,"method":"plugins.status"}}', parse],
      ["[".repeat(100_000), parse],
      ["[]", invalid(/one JSON object/)],
      [JSON.stringify([good]), invalid(/one JSON object/)],
      ["null", invalid(/one JSON object/)],
      ["7", invalid(/one JSON object/)],
      ['"handshake"', invalid(/one JSON object/)],
      ["{}", invalid(/^jsonrpc/)],
      [JSON.stringify({ ...good, jsonrpc: "1.0" }), invalid(/^jsonrpc/)],
      [JSON.stringify({ ...good, ch: "x" }), invalid(/members/)],
      ['{"jsonrpc":"2.0","id":1,"method":"plugins.status","__proto__":{}}', invalid(/members/)],
      [JSON.stringify({ jsonrpc: "2.0", id: 1 }), invalid(/^method/)],
      [JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} }), invalid(/members/)],
      [JSON.stringify({ ...good, method: "" }), invalid(/^method/)],
      [JSON.stringify({ ...good, method: 5 }), invalid(/^method/)],
      [JSON.stringify({ ...good, id: null }), invalid(/^id/)],
      [JSON.stringify({ ...good, id: {} }), invalid(/^id/)],
      [JSON.stringify({ ...good, id: "x".repeat(257) }), invalid(/^id/)],
      [JSON.stringify({ ...good, params: null }), invalid(/^params/)],
      [JSON.stringify({ ...good, params: "x" }), invalid(/^params/)],
    ] as const) {
      socket.sendText(text);
      expect(await socket.next(), text.slice(0, 80)).toEqual(answer);
    }
    socket.sendBinary(Buffer.from(JSON.stringify(good)));
    expect(await socket.call(2, "plugins.status")).toMatchObject({
      result: { plugins: expect.any(Array) },
    });
    socket.socket.destroy();
  });

  test("[D-010] a message over 16 MiB closes with 1009, others are not hurt", async () => {
    const daemon = await openDaemon();
    const [large, other] = [await openRaw(daemon), await openRaw(daemon)];
    await other.greet();
    large.sendText(" ".repeat(16 * MIB + 1));
    await large.closed;
    expect(large.closeCode).toBe(1009);
    const spaces = " ".repeat(8 * MIB);
    other.sendText(`${spaces}{"jsonrpc":"2.0","id":1,"method":"session.list"}`);
    await other.next();
    expect(await other.next()).toMatchObject({ id: 1, result: { sessions: [] } });
    other.socket.destroy();
  });

  test("[D-012] params are checked: unknown members and wrong types are -32602", async () => {
    const socket = await openRaw(await openDaemon());
    await socket.greet();
    const session_id = randomUUID();
    const failures = [
      ["session.list", { limit: 0 }],
      ["session.list", { other: 1 }],
      ["session.list", []],
      ["session.get", { session_id, other: 1 }],
      ["session.get", {}],
      ["plugins.status", { all: true }],
      ["usage.global", { everything: "yes" }],
      ["run.cancel", { run_id: 5 }],
      ["plugins.reload", { plugin: "../../etc" }],
    ] as const;
    for (const [method, params] of failures) {
      expect(await socket.call(1, method, params), method).toMatchObject({
        error: { code: -32602, data: { code: "invalid_params" } },
      });
    }
    expect(await socket.call(2, "model.list")).toMatchObject({
      error: { code: -32601, data: { code: "method_not_found" } },
    });
    for (const method of [
      "session.list",
      "usage.global",
      "runtime.snapshot.get",
      "plugins.status",
    ]) {
      socket.sendJson({ jsonrpc: "2.0", id: method, method });
    }
    const ids = new Set();
    while (ids.size < 4) {
      const { id, result, method } = await socket.next();
      if (method !== undefined) continue;
      expect(result).toBeDefined();
      ids.add(id);
    }
    socket.socket.destroy();
  });

  test("[D-014] a request without an id is carried out in silence, save what exists for its answer", async () => {
    const daemon = await openDaemon();
    const socket = await openRaw(daemon);
    socket.sendJson({ jsonrpc: "2.0", method: "handshake", params: { protocol_version: 20 } });
    expect(await socket.call(1, "session.list")).toMatchObject({
      error: { data: { code: "handshake_required" } },
    });
    await socket.greet();
    await socket.next();
    const { result } = await socket.call(2, "session.create", { selection: daemon.selection });
    const { session_id } = (result as { session: { session_id: string } }).session;
    socket.sendJson({
      jsonrpc: "2.0",
      method: "session.set_permission_mode",
      params: { session_id, mode: "yolo" },
    });
    socket.sendJson({
      jsonrpc: "2.0",
      method: "session.set_permission_mode",
      params: { session_id, mode: "no such" },
    });
    socket.sendJson({ jsonrpc: "2.0", method: "runtime.snapshot.get" });
    socket.sendJson({ jsonrpc: "2.0", method: "no.such" });
    socket.sendJson({
      jsonrpc: "2.0",
      id: 3,
      method: "session.permission.get",
      params: { session_id },
    });
    expect(await socket.next()).toMatchObject({ id: 3, result: { current_mode: "yolo" } });
    expect(socket.texts).toEqual([]);
    socket.socket.destroy();
  });
});

describe("the handshake", () => {
  test("[D-020] [D-022] [D-023] [D-024] comes first, and is followed by the runtime once", async () => {
    const socket = await openRaw(await openDaemon());
    expect(await socket.call(1, "session.list")).toEqual({
      jsonrpc: "2.0",
      id: 1,
      error: {
        code: -32001,
        message: "handshake required",
        data: { code: "handshake_required" },
      },
    });
    const greeting = { protocol_version: 20 };
    expect(await socket.call(2, "handshake", greeting)).toEqual({
      jsonrpc: "2.0",
      id: 2,
      result: greeting,
    });
    expect(await socket.next()).toMatchObject({
      method: "runtime.changed",
      params: {
        previous_revision: null,
        reasons: ["startup"],
        snapshot: { snapshot_schema_version: 5, default_agent: "primary" },
      },
    });
    expect(await socket.call(3, "handshake", greeting)).toMatchObject({ result: greeting });
    await socket.call(4, "session.list");
    expect(socket.texts).toEqual([]);
    socket.socket.destroy();
  });

  test("[D-021] another version is refused with both numbers, anything else as invalid", async () => {
    const socket = await openRaw(await openDaemon());
    const refused = async (params: unknown) =>
      ((await socket.call(1, "handshake", params))["error"] ?? {}) as {
        code: number;
        message: string;
      };
    expect(await refused({ protocol_version: 19 })).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/this daemon speaks version 20, the client 19$/),
    });
    for (const params of [
      {},
      { protocol_version: "20" },
      { protocol_version: 20.5 },
      { protocol_version: 20, more: 1 },
    ]) {
      expect((await refused(params)).code).toBe(-32602);
    }
    await socket.greet();
    socket.socket.destroy();
  });
});

test("[D-013] [D-026] requests begin in their order and are answered as they end", async () => {
  const daemon = await openDaemon();
  const socket = await openRaw(daemon);
  await socket.greet();
  const { result } = await socket.call(1, "session.create", { selection: daemon.selection });
  const { session_id } = (result as { session: { session_id: string } }).session;
  const modes = ["ask", "yolo", "auto_approve", "auto_approve_y", "auto_approve_n"];
  for (const [index, mode] of modes.entries()) {
    socket.sendJson({
      jsonrpc: "2.0",
      id: `set ${index}`,
      method: "session.set_permission_mode",
      params: { session_id, mode },
    });
    socket.sendJson({
      jsonrpc: "2.0",
      id: `get ${index}`,
      method: "session.permission.get",
      params: { session_id },
    });
  }
  const seen: unknown[] = [];
  while (seen.length < modes.length) {
    const message = await socket.next();
    if (String(message["id"]).startsWith("get")) {
      seen.push((message["result"] as { current_mode: string }).current_mode);
    }
  }
  expect(seen).toEqual(modes);
  socket.socket.destroy();
});
