import { notification, request } from "@cookie-agent/sdk/protocol";
import { Connection, createMemoryPair } from "@cookie-agent/sdk/rpc";
import { expect, test } from "vitest";
import * as z from "zod";

const Echo = request(
  "test/echo",
  () => z.object({ list: z.array(z.number()) }),
  () => z.object({ list: z.array(z.number()) }),
);
const Note = notification("test/note", () => z.object({ n: z.number() }));

test("values cross without sharing mutable state", async () => {
  const [left, right] = createMemoryPair();
  const daemon = new Connection({ transport: left, side: "daemon" });
  const client = new Connection({ transport: right, side: "client" });
  let received: number[] = [];
  daemon.onRequest(Echo, (params) => {
    received = params.list;
    return params;
  });
  daemon.listen();
  client.listen();
  const list = [1, 2];
  const answer = await client.request(Echo, { list });
  expect(answer.list).toEqual([1, 2]);
  expect(answer.list).not.toBe(list);
  expect(received).not.toBe(list);
});

test("a writer waits while more than 256 frames wait at the other end", async () => {
  const [left, right] = createMemoryPair();
  const daemon = new Connection({ transport: left, side: "daemon" });
  const client = new Connection({ transport: right, side: "client" });
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const seen: number[] = [];
  client.onNotification(Note, async ({ n }) => {
    await gate;
    seen.push(n);
  });
  daemon.listen();
  client.listen();
  let accepted = 0;
  const sending = (async () => {
    for (let n = 0; n < 1000; n++) {
      await daemon.notify(Note, { n });
      accepted += 1;
    }
  })();
  await expect.poll(() => accepted).toBe(256);
  release();
  await sending;
  await expect.poll(() => seen.length).toBe(1000);
  expect(seen).toEqual(Array.from({ length: 1000 }, (_, n) => n));
});

test("closing one end closes the other after its last frame", async () => {
  const [left, right] = createMemoryPair();
  const daemon = new Connection({ transport: left, side: "daemon" });
  const client = new Connection({ transport: right, side: "client" });
  const seen: number[] = [];
  client.onNotification(Note, ({ n }) => {
    seen.push(n);
  });
  daemon.listen();
  client.listen();
  await daemon.notify(Note, { n: 1 });
  daemon.close();
  await client.closed;
  expect(seen).toEqual([1]);
});
