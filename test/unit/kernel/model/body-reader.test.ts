import { expect, test } from "vitest";
import { BodyReader } from "../../../../kernel/src/model/body-reader.ts";

const bytes = (text: string) => Buffer.from(text);

function bodyOf(begin: (controller: ReadableStreamDefaultController<Uint8Array>) => void) {
  return new ReadableStream<Uint8Array>({ start: begin });
}

async function takeAll(reader: BodyReader): Promise<string[]> {
  const taken: string[] = [];
  for (let each = await reader.take(); each !== undefined; each = await reader.take()) {
    taken.push(Buffer.from(each).toString());
  }
  return taken;
}

test("what comes in one turn of the event loop is one piece", async () => {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const reader = new BodyReader(
    bodyOf((own) => {
      controller = own;
    }),
  );
  for (const text of ["a", "", "b"]) controller?.enqueue(bytes(text));
  expect(Buffer.from((await reader.take()) ?? []).toString()).toBe("ab");
  controller?.enqueue(bytes("c"));
  controller?.close();
  expect(await takeAll(reader)).toEqual(["c"]);
  expect(await reader.take()).toBeUndefined();
});

test("more than it reads ahead arrives whole", async () => {
  const piece = "x".repeat(100_000);
  const reader = new BodyReader(
    bodyOf((controller) => {
      for (let n = 0; n < 12; n += 1) controller.enqueue(bytes(piece));
      controller.close();
    }),
  );
  const taken = await takeAll(reader);
  expect(taken.length).toBeGreaterThan(1);
  expect(taken.join("").length).toBe(1_200_000);
});

test("a broken body rejects after what came before", async () => {
  const broken = new Error("cut");
  let fail: () => void = () => undefined;
  const reader = new BodyReader(
    bodyOf((controller) => {
      controller.enqueue(bytes("begun"));
      fail = () => controller.error(broken);
    }),
  );
  expect(Buffer.from((await reader.take()) ?? []).toString()).toBe("begun");
  fail();
  await expect(reader.take()).rejects.toBe(broken);
  await expect(reader.take()).rejects.toBe(broken);
});

test("cancelling reaches the body, also while it waits for room", async () => {
  const reason = new Error("enough");
  let cancelled: unknown;
  const reader = new BodyReader(
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(200_000)),
      cancel: (why) => {
        cancelled = why;
      },
    }),
  );
  await reader.take();
  await reader.cancel(reason);
  expect(cancelled).toBe(reason);
});
