import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { BodyReader } from "../../../../kernel/src/model/body-reader.ts";

async function takeAll(reader: BodyReader): Promise<string[]> {
  const taken: string[] = [];
  for (let each = await reader.take(); each !== undefined; each = await reader.take()) {
    taken.push(Buffer.from(each).toString());
  }
  return taken;
}

test("what comes in one turn of the event loop is one piece", async () => {
  const body = new PassThrough();
  const reader = new BodyReader(body);
  for (const text of ["a", "", "b"]) body.write(text);
  expect(Buffer.from((await reader.take()) ?? []).toString()).toBe("ab");
  body.end("c");
  expect(await takeAll(reader)).toEqual(["c"]);
  expect(await reader.take()).toBeUndefined();
});

test("more than is held arrives whole", async () => {
  const piece = "x".repeat(100_000);
  const reader = new BodyReader(Readable.from(Array(12).fill(Buffer.from(piece))));
  const taken = await takeAll(reader);
  expect(taken.length).toBeGreaterThan(1);
  expect(taken.join("").length).toBe(1_200_000);
});

test("a body that nobody takes is not read on", async () => {
  let pieces = 0;
  const body = new Readable({
    read() {
      pieces += 1;
      this.push(Buffer.alloc(100_000));
    },
  });
  const reader = new BodyReader(body);
  await reader.take();
  const before = pieces;
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  expect(pieces - before).toBeLessThanOrEqual(1);
  reader.cancel();
  expect(body.destroyed).toBe(true);
});

test("a broken body rejects after what came before", async () => {
  const broken = new Error("cut");
  const body = new PassThrough();
  const reader = new BodyReader(body);
  body.write("begun");
  expect(Buffer.from((await reader.take()) ?? []).toString()).toBe("begun");
  body.destroy(broken);
  await expect(reader.take()).rejects.toBe(broken);
  await expect(reader.take()).rejects.toBe(broken);
});

test("a body that is given up without a word rejects too", async () => {
  const body = new PassThrough();
  const reader = new BodyReader(body);
  body.destroy();
  await expect(reader.take()).rejects.toMatchObject({ code: "ECONNRESET" });
});
