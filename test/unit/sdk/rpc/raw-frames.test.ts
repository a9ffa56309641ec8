import { notification, PluginPing } from "@cookie-agent/sdk/protocol";
import { Connection, createMemoryPair } from "@cookie-agent/sdk/rpc";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { openRawPeer, type RawPeer } from "../support/raw-peer.ts";

const MIB = 1024 * 1024;
const Bulk = notification("bulk", () => z.object({ n: z.int().optional() }), { raw: true });
const Plain = notification("plain", () => z.object({}));

/** What a connection makes of a pipe: the bytes of every `bulk`, `plain`, and what was reported. */
function listenTo(peer: RawPeer) {
  const seen: (string | Buffer)[] = [];
  const problems: string[] = [];
  const connection = new Connection({
    transport: peer.transport,
    side: "kernel",
    onProtocolError: (error) => problems.push(`${error.code}: ${error.message}`),
  });
  connection.onNotification(Bulk, (_, raw) => void seen.push(Buffer.concat(raw ?? [])));
  connection.onNotification(Plain, () => void seen.push("plain"));
  connection.listen();
  return { seen, problems, connection };
}

const line = (frame: object) => Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`);
const bulk = (bytes: Buffer) => Buffer.concat([line({ method: "bulk", raw: bytes.length }), bytes]);
const PLAIN = line({ method: "plain" });
/** As a command may print them: line feeds, a whole frame, no UTF-8. */
const NASTY = Buffer.concat([
  Buffer.from('\n{"jsonrpc":"2.0","method":"plain"}\n\r\n'),
  Buffer.from([0, 0xff, 0xc3]),
]);

describe("reading raw bytes", () => {
  test("[E-016] they arrive as they were, at whatever byte the pipe is cut", async () => {
    const sent = Buffer.concat([PLAIN, bulk(NASTY), bulk(Buffer.alloc(0)), PLAIN]);
    for (let cut = 0; cut <= sent.length; cut += 1) {
      const peer = openRawPeer({ raw: true });
      const { seen, problems, connection } = listenTo(peer);
      peer.input.write(sent.subarray(0, cut));
      peer.input.end(sent.subarray(cut));
      await connection.closed;
      expect(seen).toEqual(["plain", NASTY, Buffer.alloc(0), "plain"]);
      expect([problems, peer.badLines]).toEqual([[], []]);
    }
  });

  test("[E-016] any bytes in any pieces", async () => {
    const frames = fc.array(fc.uint8Array({ maxLength: 20_000, size: "max" }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(
        frames,
        fc.array(fc.integer({ min: 1, max: 9000 })),
        async (given, sizes) => {
          const peer = openRawPeer({ raw: true });
          const { seen, connection } = listenTo(peer);
          let rest = Buffer.concat(given.map((bytes) => bulk(Buffer.from(bytes))));
          for (const size of sizes) {
            peer.input.write(rest.subarray(0, size));
            rest = rest.subarray(size);
          }
          peer.input.end(rest);
          await connection.closed;
          expect(seen).toEqual(given.map((bytes) => Buffer.from(bytes)));
        },
      ),
      { numRuns: 40 },
    );
  });

  test.for([
    ["more than a frame may hold", { method: "bulk" }, 4 * MIB + 1, "more than 4194304 raw bytes"],
    ["a request", { id: 1, method: "bulk" }, 9, "raw bytes may follow a notification only"],
    ["a response", { id: 1, result: {} }, 9, "raw bytes may follow a notification only"],
  ] as const)(
    "[E-016] [E-002] %s is skipped with its bytes and counted",
    async ([, frame, byteLength, reason]) => {
      const peer = openRawPeer({ raw: true });
      const { seen, connection } = listenTo(peer);
      const filler = Buffer.alloc(byteLength, PLAIN);
      peer.input.end(Buffer.concat([line({ ...frame, raw: byteLength }), filler, PLAIN]));
      await connection.closed;
      expect(seen).toEqual(["plain"]);
      expect(peer.badLines).toMatchObject([{ reason, final: false }]);
    },
  );

  test.for([-1, 1.5, 2 ** 53, "9", null, [9]])(
    "[E-016] raw: %j leaves nothing that could be read on",
    async (raw) => {
      const peer = openRawPeer({ raw: true });
      const { seen, connection } = listenTo(peer);
      peer.input.write(Buffer.concat([line({ method: "bulk", raw }), PLAIN]));
      await connection.closed;
      expect(seen).toEqual([]);
      expect(peer.badLines).toMatchObject([{ reason: "raw is no count of bytes", final: true }]);
    },
  );

  test("[E-016] without an agreement the pipe ends before the bytes are read as lines", async () => {
    const peer = openRawPeer();
    const { seen, connection } = listenTo(peer);
    peer.input.write(Buffer.concat([bulk(NASTY), PLAIN]));
    await connection.closed;
    expect(seen).toEqual([]);
    expect(peer.badLines).toMatchObject([{ reason: "raw bytes were not agreed on", final: true }]);
  });

  test("[E-016] a pipe that ends inside them says how many are missing", async () => {
    const peer = openRawPeer({ raw: true });
    const { seen, connection } = listenTo(peer);
    peer.input.end(bulk(NASTY).subarray(0, -7));
    await connection.closed;
    expect(seen).toEqual([]);
    expect(peer.badLines).toMatchObject([{ reason: "the pipe ended 7 raw bytes early" }]);
  });

  test("[E-016] a pipe that ends with their announcement says that all are missing", async () => {
    const peer = openRawPeer({ raw: true });
    const { seen, connection } = listenTo(peer);
    peer.input.end(line({ method: "bulk", raw: 7 }).subarray(0, -1));
    await connection.closed;
    expect(seen).toEqual([]);
    expect(peer.badLines).toMatchObject([{ reason: "the pipe ended 7 raw bytes early" }]);
  });

  test("[E-016] a notification that takes none is reported and the next one served", async () => {
    const peer = openRawPeer({ raw: true });
    const { seen, problems, connection } = listenTo(peer);
    peer.input.end(Buffer.concat([line({ method: "plain", raw: 2 }), Buffer.from("{}"), PLAIN]));
    await connection.closed;
    expect(seen).toEqual(["plain"]);
    expect(problems).toEqual(["protocol_violation: plain takes no raw bytes"]);
  });

  test("[E-012] [E-016] they count as waiting like the text of a line", async () => {
    const peer = openRawPeer({ raw: true });
    peer.transport.reader.listen(() => {});
    for (let sent = 0; sent < 3; sent += 1) peer.input.write(bulk(Buffer.alloc(3 * MIB)));
    await expect.poll(() => peer.input.isPaused()).toBe(true);
  });

  test("[E-014] [E-016] on a shared pipe each channel gets its own, between frames of the other", async () => {
    const peer = openRawPeer({ raw: true });
    const open = (name: string) => listenTo({ ...peer, transport: asLine(peer, name) });
    const [a, b] = [open("a"), open("b")];
    const tagged = (ch: string, bytes: Buffer) =>
      Buffer.concat([line({ ch, method: "bulk", raw: bytes.length }), bytes]);
    const plain = (ch: string) => line({ ch, method: "plain" });
    const sent = [tagged("a", NASTY), plain("b"), tagged("b", PLAIN), plain("a")];
    for (const byte of Buffer.concat(sent)) peer.input.write(Buffer.of(byte));
    peer.input.end();
    await Promise.all([a.connection.closed, b.connection.closed]);
    expect([a.seen, b.seen, peer.badLines]).toEqual([[NASTY, "plain"], ["plain", PLAIN], []]);
  });
});

function asLine(peer: RawPeer, name: string): RawPeer["transport"] {
  return { ...peer.transport, ...peer.transport.channel(name) };
}

describe("writing raw bytes", () => {
  test("[E-016] the line tells their number and they follow in the order of their parts", async () => {
    const peer = openRawPeer();
    const connection = new Connection({ transport: peer.transport, side: "plugin" });
    const written = connection.notify(Bulk, { n: 1 }, [NASTY, Buffer.from("end")]);
    const expected = Buffer.concat([
      Buffer.from(`{"jsonrpc":"2.0","method":"bulk","params":{"n":1},"raw":${NASTY.length + 3}}\n`),
      NASTY,
      Buffer.from("end"),
    ]);
    await written;
    expect(Buffer.from(peer.written())).toEqual(expected);
  });

  test("[E-002] [E-016] more than a frame may hold fails at its sender", async () => {
    const { transport } = openRawPeer();
    const connection = new Connection({ transport, side: "plugin" });
    const tooMuch = [Buffer.alloc(4 * MIB), Buffer.alloc(1)];
    await expect(connection.notify(Bulk, {}, tooMuch)).rejects.toMatchObject({
      code: "resource_limit",
    });
  });

  test("[E-016] in memory they cross as a copy", async () => {
    const [left, right] = createMemoryPair();
    const seen: string[] = [];
    const kernel = new Connection({ transport: left, side: "kernel" });
    kernel.onRequest(PluginPing, () => ({}));
    kernel.onNotification(Bulk, (_, raw) => void seen.push(Buffer.concat(raw ?? []).toString()));
    kernel.listen();
    const plugin = new Connection({ transport: right, side: "plugin" });
    plugin.listen();
    const bytes = Buffer.from("first");
    void plugin.notify(Bulk, {}, [bytes]);
    bytes.write("later");
    await plugin.request(PluginPing, {});
    expect(seen).toEqual(["first"]);
  });
});
