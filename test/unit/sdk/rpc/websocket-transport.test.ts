import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { SocketReader, type SocketReaderOptions } from "../../../../sdk/src/rpc/socket-reader.ts";
import type { Message, Transport } from "../../../../sdk/src/rpc/transport.ts";
import { acceptWebSocket } from "../../../../sdk/src/rpc/websocket-transport.ts";
import { askEndpoint, type RawWebSocket } from "../../../support/raw-websocket.ts";

const MIB = 1024 * 1024;

afterEach(() => {
  vi.useRealTimers();
});

/** The daemon's end of a connection and the bytes of the other one. */
async function connect(): Promise<{ transport: Transport; peer: RawWebSocket }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const accepted = new Promise<Transport>((resolve) => {
    server.on("upgrade", (request, socket, head) =>
      acceptWebSocket(request, socket, head, resolve),
    );
  });
  const { port } = server.address() as { port: number };
  const answer = await askEndpoint(`ws://127.0.0.1:${port}/ws`);
  if (!("socket" in answer)) throw new Error("refused");
  const { socket: peer } = answer;
  onTestFinished(() => void peer.socket.destroy());
  const transport = await accepted;
  onTestFinished(() => transport.close());
  return { transport, peer };
}

const news = (text: string) => ({ jsonrpc: "2.0", method: "news", params: { text } }) as Message;
const answer = (id: number, result: unknown) => ({ jsonrpc: "2.0", id, result }) as Message;
const isPending = async (promise: Promise<unknown>) =>
  (await Promise.race([
    promise.then(() => "done"),
    new Promise((go) => setImmediate(go, "pending")),
  ])) === "pending";

/** Writes until the socket of a peer that does not read is behind. */
async function fillSocket({ transport, peer }: Awaited<ReturnType<typeof connect>>): Promise<void> {
  peer.socket.pause();
  while (transport.room?.() === undefined) {
    await transport.writer.write(answer(0, "x".repeat(MIB)));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("the queue of a connection whose peer does not read", () => {
  test("[D-080] [D-082] takes 512 messages, then writers of news wait; answers do not", async () => {
    const pair = await connect();
    await fillSocket(pair);
    const { transport, peer } = pair;
    for (let index = 1; index < 512; index += 1) await transport.writer.write(news(`${index}`));
    const last = transport.writer.write(news("512"));
    expect(await isPending(last)).toBe(true);
    await transport.writer.write(answer(1, "not held up"));
    expect(await isPending(last)).toBe(true);

    peer.socket.resume();
    await last;
    const seen: unknown[] = [];
    while (seen.length < 513) {
      const { id, method, params } = await peer.next();
      if (method !== undefined) seen.push((params as { text: string }).text);
      if (id === 1) seen.push("answer");
    }
    expect(seen).toEqual([...Array.from({ length: 512 }, (_, index) => `${index + 1}`), "answer"]);
    expect(transport.room?.()).toBeUndefined();
  });

  test("[D-080] is full by the size of what waits too", async () => {
    const pair = await connect();
    await fillSocket(pair);
    const { writer } = pair.transport;
    for (let index = 0; index < 7; index += 1) await writer.write(news("x".repeat(MIB)));
    expect(await isPending(writer.write(news("x".repeat(2 * MIB))))).toBe(true);
  });

  test("[D-081] ends the connection with 1013 when it was full for 30 s, and not before", async () => {
    const pair = await connect();
    await fillSocket(pair);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { transport, peer } = pair;
    let closed = false;
    transport.writer.onClose(() => {
      closed = true;
    });
    const waiting = Array.from({ length: 512 }, () => transport.writer.write(news("more")));
    vi.advanceTimersByTime(29_999);
    expect(closed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(closed).toBe(true);
    await Promise.all(waiting);
    vi.useRealTimers();
    peer.socket.resume();
    await peer.closed;
    expect(peer.closeCode).toBe(1013);
    expect(peer.texts.some((text) => text.includes("more"))).toBe(false);
  });

  test("[D-083] no further request is read while 128 answers wait", async () => {
    const pair = await connect();
    await fillSocket(pair);
    const { transport, peer } = pair;
    const heard: Message[] = [];
    transport.reader.listen((frame) => {
      heard.push(frame);
      transport.flow?.dispatched(frame);
      transport.flow?.settled(frame);
    });
    for (let id = 0; id < 128; id += 1) await transport.writer.write(answer(id, {}));
    peer.sendJson({ jsonrpc: "2.0", id: 1, method: "late" });
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual([]);
    peer.socket.resume();
    await expect.poll(() => heard).toMatchObject([{ id: 1, method: "late" }]);
  });

  test("a ping is not answered, so that answers cannot pile up either", async () => {
    const pair = await connect();
    await fillSocket(pair);
    const { peer, transport } = pair;
    peer.ping("while behind");
    peer.sendText("no message");
    await expect.poll(() => transport.room?.() !== undefined).toBe(true);
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    peer.socket.resume();
    await expect.poll(() => transport.room?.()).toBeUndefined();
    peer.ping("caught up");
    await expect.poll(() => peer.pongs).toEqual(["caught up"]);
  });
});

test("[D-151] a message over the cap is not written: an answer becomes an error, a notification is refused", async () => {
  const { transport, peer } = await connect();
  const text = "x".repeat(16 * MIB);
  await transport.writer.write(answer(7, text));
  expect(await peer.next()).toMatchObject({ id: 7, error: { data: { code: "resource_limit" } } });
  await expect(transport.writer.write(news(text))).rejects.toMatchObject({
    code: "resource_limit",
  });
});

test.for([
  ["going_away", 1001],
  ["no_handshake", 1008],
  ["done", 1000],
] as const)(
  "[D-025] [D-100] what waits is sent before the goodbye, which says why: %s is %i",
  async ([reason, code]) => {
    const { transport, peer } = await connect();
    void transport.writer.write(news("last words"));
    transport.close(reason);
    await transport.writer.write(news("too late"));
    await peer.closed;
    expect(peer.texts).toEqual([JSON.stringify(news("last words"))]);
    expect(peer.closeCode).toBe(code);
  },
);

test("[D-088] the bytes of a message are wiped once it is read", () => {
  const socket = Object.assign(new EventEmitter(), { pause() {}, resume() {} });
  const heard: string[] = [];
  const reader = new SocketReader({
    socket: socket as unknown as SocketReaderOptions["socket"],
    read(text) {
      heard.push(text);
      return { bad: { code: -32700, message: "parse error" } };
    },
    onBadEnvelope: () => undefined,
  });
  reader.listen(() => undefined);
  const bytes = Buffer.from("secret");
  socket.emit("message", bytes, false);
  expect(heard).toEqual(["secret"]);
  expect(bytes).toEqual(Buffer.alloc(6));
});
