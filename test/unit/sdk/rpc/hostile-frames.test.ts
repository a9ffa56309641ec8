import { isUtf8 } from "node:buffer";
import { setImmediate } from "node:timers/promises";
import * as protocol from "@cookie-agent/sdk/protocol";
import { Connection } from "@cookie-agent/sdk/rpc";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openRawPeer } from "../support/raw-peer.ts";

/** The same cases on every machine; a failure prints the path that leads back to it. */
const CASES = { seed: 20_261_130, numRuns: 300 };
const MAX_FRAME_BYTES = 4096;

const ID = "0198c000-0000-7000-8000-000000000001";
/** One valid frame of everything that a plugin may send. */
const VALID: readonly object[] = [
  { id: 0, result: { protocol_version: "0.1.0", name: "p", version: "1.0.0" } },
  { id: 1, result: { content: "text", is_error: false, metadata: { a: [1, null] } } },
  { id: 2, error: { code: -32000, message: "no", data: { code: "execution_failed" } } },
  { method: "host/log", params: { level: "info", message: "hello", fields: { n: 1 } } },
  {
    method: "host/tools/progress",
    params: { invocation_id: ID, output: [{ stream: "out", text: "é €\n" }], message: "m" },
  },
  { id: "a", method: "host/artifacts/read", params: { context_id: ID, uri: "artifact://0" } },
  { id: 7, method: "host/artifacts/write", params: { context_id: ID, text: "x" } },
  {
    id: "l",
    method: "host/tools/list_changed",
    params: {
      tools: [
        { name: "t", description: "d", permission_name: "t", parameters: { type: "object" } },
      ],
      claims: ["x_*"],
    },
  },
  {
    id: 8,
    method: "plugin/emit",
    params: { session_id: ID, context_id: ID, name: "n", payload: {} },
  },
  { method: "$/cancelRequest", params: { id: 0 } },
].map((frame) => ({ jsonrpc: "2.0", ...frame }));

const validLine = fc.constantFrom(...VALID).map((frame) => Buffer.from(JSON.stringify(frame)));
const spliced = fc
  .tuple(validLine, fc.nat(), fc.nat({ max: 8 }), fc.uint8Array({ maxLength: 8 }))
  .map(([line, place, cut, bytes]) => {
    const at = place % (line.length + 1);
    return Buffer.concat([line.subarray(0, at), bytes, line.subarray(at + cut)]);
  });
const line = fc.oneof(
  validLine,
  spliced,
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  fc.json().map((text) => Buffer.from(text)),
  fc.nat({ max: 3 * MAX_FRAME_BYTES }).map((length) => Buffer.alloc(length, "x")),
);
const pipe = fc
  .array(line, { maxLength: 12 })
  .map((lines) => Buffer.concat(lines.flatMap((bytes) => [bytes, Buffer.from("\n")])));
const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { maxLength: 30 });

/** What must come of a pipe without raw bytes, found the plain way: whole, and line by line. */
function judge(bytes: Buffer): { frames: unknown[]; bad: number; isFinal: boolean } {
  const frames: unknown[] = [];
  let bad = 0;
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0x0a, start);
    const stop = end < 0 ? bytes.length : end;
    const whole = bytes.subarray(start, stop);
    start = stop + 1;
    const text = whole.at(-1) === 0x0d ? whole.subarray(0, -1) : whole;
    if (whole.length > MAX_FRAME_BYTES) bad += 1;
    else if (text.length > 0) {
      const frame = isUtf8(text) ? parse(text.toString()) : undefined;
      if (typeof frame !== "object" || frame === null || Array.isArray(frame)) bad += 1;
      else if (Object.hasOwn(frame, "raw")) return { frames, bad: bad + 1, isFinal: true };
      else frames.push(frame);
    }
  }
  return { frames, bad, isFinal: false };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function feed(input: NodeJS.WritableStream, bytes: Buffer, pieces: readonly number[]): void {
  let start = 0;
  for (const size of pieces) {
    if (start >= bytes.length) break;
    input.write(bytes.subarray(start, start + size));
    start += size;
  }
  input.end(bytes.subarray(start));
}

describe("a pipe that may hold anything", () => {
  test("[E-001] [E-002] yields the frames of its good lines in order, counts the others, and no more", async () => {
    await fc.assert(
      fc.asyncProperty(pipe, sizes, async (bytes, pieces) => {
        const peer = openRawPeer({ maxFrameBytes: MAX_FRAME_BYTES });
        const frames: unknown[] = [];
        const { reader, flow } = peer.transport;
        const closed = new Promise<void>((resolve) => reader.onClose(resolve));
        reader.listen((frame) => {
          frames.push(frame);
          flow?.dispatched(frame);
          flow?.settled(frame);
        });
        feed(peer.input, bytes, pieces);
        await closed;
        const expected = judge(bytes);
        expect(frames).toEqual(expected.frames);
        expect(peer.badLines).toHaveLength(expected.bad);
        expect(peer.badLines.at(-1)?.final ?? false).toBe(expected.isFinal);
        for (const { head } of peer.badLines) expect(head.length).toBeLessThanOrEqual(200);
      }),
      CASES,
    );
  });

  test("[E-014] on a shared pipe every frame reaches the one channel that it names", async () => {
    const channel = fc.constantFrom("one", "two", "gone", "unknown", 7, null, undefined);
    const frame = fc.tuple(fc.constantFrom(...VALID), channel);
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), sizes, async (given, pieces) => {
        const peer = openRawPeer();
        const seen: Record<string, unknown[]> = { one: [], two: [] };
        const ends = ["one", "two"].map((name) => {
          const { reader, flow } = peer.transport.channel(name);
          reader.listen((received) => {
            seen[name]?.push(received);
            flow?.dispatched(received);
            flow?.settled(received);
          });
          return new Promise<void>((resolve) => reader.onClose(resolve));
        });
        peer.transport.channel("gone").close();
        const lines = given.map(([body, ch]) =>
          JSON.stringify(ch === undefined ? body : { ch, ...body }),
        );
        feed(peer.input, Buffer.from(lines.map((text) => `${text}\n`).join("")), pieces);
        await Promise.all(ends);
        for (const name of ["one", "two"]) {
          expect(seen[name]).toEqual(given.filter(([, ch]) => ch === name).map(([body]) => body));
        }
        const strangers = given.filter(([, ch]) => !["one", "two", "gone"].includes(String(ch)));
        expect(peer.badLines).toHaveLength(strangers.length);
      }),
      CASES,
    );
  });
});

type Frame = Record<string, unknown>;

function count(frames: readonly Frame[], matches: (frame: Frame) => boolean): Map<string, number> {
  const counts = new Map<string, number>();
  for (const frame of frames.filter(matches)) {
    const id = String(frame["id"]);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** Replaces, removes or adds one member somewhere in a frame. */
const mutated = fc
  .tuple(
    fc.constantFrom(...VALID),
    fc.nat(),
    fc.constantFrom("replace", "remove", "add"),
    fc.jsonValue(),
  )
  .map(([frame, place, how, value]) => {
    const copy = structuredClone(frame) as Record<string, unknown>;
    const holders: Record<string, unknown>[] = [];
    const visit = (node: unknown): void => {
      if (typeof node !== "object" || node === null) return;
      holders.push(node as Record<string, unknown>);
      for (const inner of Object.values(node)) visit(inner);
    };
    visit(copy);
    const holder = holders[place % holders.length] ?? copy;
    const keys = Object.keys(holder);
    const key = keys[place % Math.max(1, keys.length)] ?? "x";
    if (how === "remove") delete holder[key];
    else holder[how === "add" ? "surprise" : key] = value;
    // Raw bytes have laws of their own.
    delete copy["raw"];
    return copy;
  });

describe("a peer that may say anything", () => {
  const served = [
    protocol.ArtifactsRead,
    protocol.ArtifactsWrite,
    protocol.ToolsListChanged,
    protocol.PluginEmit,
  ];
  const heard = [protocol.HostLog, protocol.ToolsProgress];

  test("[E-003] [E-006] [E-007] no handler sees what its schema refuses, every request has one answer, and the next is served", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(mutated, { minLength: 1, maxLength: 8 }), async (frames) => {
        const peer = openRawPeer();
        const connection = new Connection({ transport: peer.transport, side: "kernel" });
        let accepted = 0;
        for (const method of served) {
          connection.onRequest(method, (params) => {
            accepted += 1;
            expect(method.params.safeParse(params).success).toBe(true);
            throw new protocol.CookieError("busy", "not now");
          });
        }
        for (const notification of heard) {
          connection.onNotification(notification, (params) => {
            accepted += 1;
            expect(notification.params.safeParse(params).success).toBe(true);
          });
        }
        connection.listen();
        const asked = connection.request(protocol.PluginPing, {}).then(
          () => "answered",
          (error: unknown) => (protocol.isCookieError(error) ? "refused" : "broken"),
        );
        peer.send(...frames, { jsonrpc: "2.0", id: "last", method: "host/nothing" });
        while ((await peer.next())["id"] !== "last");
        // Answers may overtake each other, by a few turns at most: nothing here waits for the world.
        for (let turn = 0; turn < 20; turn += 1) await setImmediate();
        connection.close();
        expect(await asked).not.toBe("broken");
        const answers = count(
          peer
            .written()
            .toString()
            .trimEnd()
            .split("\n")
            .map((text) => JSON.parse(text) as Frame),
          ({ method }) => method === undefined,
        );
        const requests = count(
          [...frames, { id: "last", method: "host/nothing" }],
          ({ id, method }) =>
            typeof method === "string" && (typeof id === "string" || typeof id === "number"),
        );
        expect([...answers.keys()].sort()).toEqual([...requests.keys()].sort());
        // An id that is used again while its first request waits is reported and not served twice.
        for (const [id, sent] of requests) expect(answers.get(id)).toBeLessThanOrEqual(sent);
        expect(accepted).toBeLessThanOrEqual(frames.length);
      }),
      CASES,
    );
  });
});
