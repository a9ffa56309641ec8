import { Writable } from "node:stream";
import { createLineTransport } from "@cookie-agent/sdk/rpc";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openRawPeer, type RawPeer } from "../support/raw-peer.ts";

const MIB = 1024 * 1024;

function collectFrames(peer: RawPeer): object[] {
  const frames: object[] = [];
  peer.transport.reader.listen((frame) => {
    frames.push(frame);
    peer.transport.flow?.dispatched(frame);
    peer.transport.flow?.settled(frame);
  });
  return frames;
}

async function feed(peer: RawPeer, chunks: readonly Buffer[]): Promise<void> {
  for (const chunk of chunks) {
    if (!peer.input.write(chunk)) await new Promise((resolve) => peer.input.once("drain", resolve));
  }
  peer.input.end();
  await new Promise<void>((resolve) => peer.transport.reader.onClose(() => resolve()));
}

function cut(bytes: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}

describe("reading lines", () => {
  test("[E-001] [E-011] frames arrive whole wherever the chunks are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            jsonrpc: fc.constant("2.0"),
            method: fc.string({ unit: "grapheme" }),
            params: fc.dictionary(fc.string(), fc.string({ unit: "binary" })),
          }),
          { minLength: 1, maxLength: 5 },
        ),
        fc.array(fc.nat({ max: 400 }), { maxLength: 20 }),
        async (sent, cuts) => {
          const peer = openRawPeer();
          const frames = collectFrames(peer);
          const bytes = Buffer.from(sent.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
          const edges = [0, ...cuts.map((at) => at % bytes.length), bytes.length];
          edges.sort((a, b) => a - b);
          const chunks = edges.slice(1).map((end, i) => bytes.subarray(edges[i] ?? 0, end));
          await feed(
            peer,
            chunks.filter((chunk) => chunk.length > 0),
          );
          expect(frames).toEqual(JSON.parse(JSON.stringify(sent)));
          expect(peer.badLines).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test.for([1, 33_426])(
    "[E-011] [B142] a 70 KB answer in %i-byte chunks is parsed once",
    async (size) => {
      const peer = openRawPeer();
      const frames = collectFrames(peer);
      const text = '\\u00e9 "quoted" 🍪 日本 '.repeat(2800);
      const escaped = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { text } }).replaceAll(
        "日",
        "\\u65e5",
      );
      await feed(peer, cut(Buffer.from(`${escaped}\n`), size));
      expect(frames).toEqual([{ jsonrpc: "2.0", id: 1, result: { text } }]);
    },
  );

  test("[E-001] CRLF, empty lines and an unterminated last line are accepted", async () => {
    const peer = openRawPeer();
    const frames = collectFrames(peer);
    await feed(peer, [Buffer.from('{"a":1}\r\n\n\r\n{"b":2}\n{"c":3}')]);
    expect(frames).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }]);
    expect(peer.badLines).toEqual([]);
  });

  test.for([
    ["over-long", Buffer.from(`{"a":"${"x".repeat(2000)}"}`), "longer than 1000 bytes"],
    ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), "not UTF-8"],
    ["stray text", Buffer.from("listening on port 80"), "not JSON"],
    ["a batch array", Buffer.from('[{"jsonrpc":"2.0","id":1}]'), "not a JSON object"],
    ["a scalar", Buffer.from("null"), "not a JSON object"],
  ] as const)(
    "[E-002] %s is skipped and quoted, the next line is served",
    async ([, line, reason]) => {
      const peer = openRawPeer({ maxFrameBytes: 1000 });
      const frames = collectFrames(peer);
      await feed(peer, [line, Buffer.from('\n{"next":true}\n')]);
      expect(frames).toEqual([{ next: true }]);
      expect(peer.badLines).toHaveLength(1);
      expect(peer.badLines[0]?.reason).toContain(reason);
      expect(peer.badLines[0]?.head).toBe(line.toString("utf8").slice(0, 200));
    },
  );

  test("[E-002] a line of exactly 4 MiB passes and one byte more is skipped", async () => {
    const peer = openRawPeer();
    const frames = collectFrames(peer);
    const frame = (bytes: number) => `{"a":"${"x".repeat(bytes - 8)}"}\n`;
    await feed(peer, cut(Buffer.from(frame(4 * MIB) + frame(4 * MIB + 1) + frame(9)), 65_536));
    expect(frames.map((f) => JSON.stringify(f).length)).toEqual([4 * MIB, 9]);
    expect(peer.badLines).toHaveLength(1);
  });

  test("[E-011] a long line that comes byte by byte is read", async () => {
    const peer = openRawPeer();
    const frames = collectFrames(peer);
    const bytes = Buffer.from(`{"a":"${"x".repeat(300_000)}"}\n`);
    await feed(peer, cut(bytes, 1));
    expect(frames).toEqual([JSON.parse(bytes.toString())]);
  });

  test("[E-002] [B143] a 100 MB line is given up at the cap, long before its end", async () => {
    const peer = openRawPeer();
    const frames = collectFrames(peer);
    const piece = Buffer.alloc(MIB, "x");
    let reportedAfter = 0;
    for (let sent = 1; sent <= 100; sent++) {
      if (!peer.input.write(piece)) await new Promise((r) => peer.input.once("drain", r));
      if (reportedAfter === 0 && peer.badLines.length > 0) reportedAfter = sent;
    }
    await feed(peer, [Buffer.from('\n{"normal":1}\n')]);
    expect(reportedAfter).toBeLessThanOrEqual(6);
    expect(peer.badLines).toHaveLength(1);
    expect(frames).toEqual([{ normal: 1 }]);
  });

  test("[E-002] [B146] a pretty-printed frame is bad line by line and never joined", async () => {
    const peer = openRawPeer();
    const frames = collectFrames(peer);
    const pretty = JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} }, null, 2);
    await feed(peer, [Buffer.from(`${pretty}\n{"ok":1}\n`)]);
    expect(peer.badLines).toHaveLength(pretty.split("\n").length);
    expect(frames).toEqual([{ ok: 1 }]);
  });

  test("[E-012] reading stops above 256 waiting frames and goes on at half", async () => {
    const peer = openRawPeer();
    const waiting: object[] = [];
    const { reader, flow } = peer.transport;
    reader.listen((frame) => waiting.push(frame));
    const settleOne = () => {
      const frame = waiting.shift() as Parameters<NonNullable<typeof flow>["settled"]>[0];
      flow?.dispatched(frame);
      flow?.settled(frame);
    };
    peer.send(...Array.from({ length: 256 }, (_, id) => ({ id, method: "m" })));
    await expect.poll(() => waiting.length).toBe(256);
    expect(peer.input.isPaused()).toBe(false);
    peer.send({ id: 256, method: "m" });
    await expect.poll(() => peer.input.isPaused()).toBe(true);
    while (waiting.length > 129) settleOne();
    expect(peer.input.isPaused()).toBe(true);
    settleOne();
    expect(peer.input.isPaused()).toBe(false);
  });

  test("[E-012] reading stops above 8 MiB of waiting frames", async () => {
    const peer = openRawPeer();
    peer.transport.reader.listen(() => {});
    peer.send(...[1, 2, 3].map((id) => ({ id, method: "m", text: "x".repeat(3 * MIB) })));
    await expect.poll(() => peer.input.isPaused()).toBe(true);
  });

  test("[E-008] the end of the input is told after the last frame was dispatched", async () => {
    const peer = openRawPeer();
    const { reader, flow } = peer.transport;
    const seen: string[] = [];
    reader.onClose(() => seen.push("close"));
    reader.listen((frame) => {
      setImmediate(() => {
        seen.push("frame");
        flow?.dispatched(frame);
      });
    });
    peer.send({ id: 1, method: "m" }, { id: 2, method: "m" });
    peer.input.end();
    await expect.poll(() => seen).toEqual(["frame", "frame", "close"]);
  });
});

describe("writing lines", () => {
  test("[E-001] line breaks inside strings are escaped", async () => {
    const peer = openRawPeer();
    const frame = { jsonrpc: "2.0", method: "m", params: { text: "a\nb\r\n" } };
    await peer.transport.writer.write(frame);
    expect(await peer.next()).toEqual(frame);
  });

  test("[E-002] the cap counts encoded bytes and a message over it is not written", async () => {
    const peer = openRawPeer({ maxFrameBytes: 60 });
    const { writer } = peer.transport;
    const frame = { jsonrpc: "2.0", method: "m", params: { t: "é".repeat(10) } };
    await expect(writer.write(frame)).rejects.toMatchObject({ code: "resource_limit" });
    const small = { jsonrpc: "2.0", method: "m" };
    await writer.write(small);
    expect(await peer.next()).toEqual(small);
  });

  test("[T-047] [E-002] a response over the cap is replaced by the error", async () => {
    const peer = openRawPeer({ maxFrameBytes: 1000 });
    const response = { jsonrpc: "2.0", id: 7, result: { content: "x".repeat(1000) } };
    await peer.transport.writer.write(response);
    expect(await peer.next()).toMatchObject({
      id: 7,
      error: { code: -31013, data: { code: "resource_limit" } },
    });
  });

  test("[E-011] a write resolves when the stream has drained, with one listener for all", async () => {
    const held: (() => void)[] = [];
    const output = new Writable({
      highWaterMark: 1,
      write: (_chunk, _encoding, done) => {
        held.push(done);
      },
    });
    const { writer } = createLineTransport({
      input: openRawPeer().input,
      output,
      onBadLine: () => {},
    });
    const before = output.listenerCount("drain");
    let resolved = 0;
    const writes = Array.from({ length: 50 }, async () => {
      await writer.write({ jsonrpc: "2.0" });
      resolved += 1;
    });
    expect(output.listenerCount("drain")).toBe(before);
    await new Promise((resolve) => setImmediate(resolve));
    expect(resolved).toBe(0);
    while (output.writableLength > 0) {
      held.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(writes);
    expect(resolved).toBe(50);
  });

  test("writes that wait are released when the stream closes", async () => {
    const output = new Writable({ highWaterMark: 1, write: () => {} });
    const { writer } = createLineTransport({
      input: openRawPeer().input,
      output,
      onBadLine: () => {},
    });
    const write = writer.write({ jsonrpc: "2.0" });
    output.destroy();
    await write;
  });
});
