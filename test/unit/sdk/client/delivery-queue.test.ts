import { describe, expect, test } from "vitest";
import { DeliveryQueue } from "../../../../sdk/src/client/delivery-queue.ts";

async function take(queue: DeliveryQueue<number>, count: number): Promise<number[]> {
  const taken: number[] = [];
  for await (const item of queue) {
    taken.push(item);
    if (taken.length === count) break;
  }
  return taken;
}

describe("news of a session", () => {
  test("is read in order, before and after it arrives", async () => {
    const queue = new DeliveryQueue(-1);
    queue.push(1);
    const reading = take(queue, 3);
    await Promise.resolve();
    queue.push(2);
    queue.push(3);
    expect(await reading).toEqual([1, 2, 3]);
  });

  test("that is not read is dropped behind a mark, and goes on after the reader has caught up", async () => {
    const queue = new DeliveryQueue(-1);
    for (let item = 0; item < 10_000; item += 1) queue.push(item);
    const taken = await take(queue, 4097);
    expect(taken.slice(-2)).toEqual([4095, -1]);
    queue.push(10_000);
    queue.end();
    expect(await take(queue, 2)).toEqual([10_000]);
  });

  test("what was queued before the end is still read", async () => {
    const queue = new DeliveryQueue(-1);
    queue.push(1);
    queue.end();
    queue.push(2);
    expect(await take(queue, 5)).toEqual([1]);
  });
});
