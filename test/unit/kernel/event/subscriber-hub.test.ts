import { expect, test } from "vitest";
import {
  SubscriberHub,
  type Subscription,
  type SubscriptionGap,
} from "../../../../kernel/src/event/subscriber-hub.ts";

interface Numbered {
  readonly seq: number;
}

async function collect(
  subscription: Subscription<Numbered>,
): Promise<(Numbered | SubscriptionGap)[]> {
  const items: (Numbered | SubscriptionGap)[] = [];
  for await (const item of subscription) items.push(item);
  return items;
}

test("[S-063] a full tail ends with a gap that names the last queued event", async () => {
  const hub = new SubscriberHub<Numbered>();
  const slow = hub.subscribe(10);
  for (let seq = 11; seq < 400; seq += 1) hub.publish({ seq });
  const items = await collect(slow);
  expect(items).toHaveLength(256);
  expect(items.at(-2)).toEqual({ seq: 265 });
  expect(items.at(-1)).toEqual({ gap: 265 });
});

test("[S-063] a reader that keeps up gets every event in order, whatever others do", async () => {
  const hub = new SubscriberHub<Numbered>();
  hub.subscribe(0);
  const reader = hub.subscribe(0);
  const seen: number[] = [];
  const reading = (async () => {
    for await (const item of reader) if ("seq" in item) seen.push(item.seq);
  })();
  for (let seq = 1; seq <= 600; seq += 1) {
    hub.publish({ seq });
    if (seq % 100 === 0) await new Promise(setImmediate);
  }
  await new Promise(setImmediate);
  reader.close();
  await reading;
  expect(seen).toEqual(Array.from({ length: 600 }, (_, index) => index + 1));
});

test("[S-063] a closed hub ends an empty tail with a gap at its beginning", async () => {
  const hub = new SubscriberHub<Numbered>();
  const tail = hub.subscribe(7);
  hub.close();
  expect(await collect(tail)).toEqual([{ gap: 7 }]);
});

test("closing a tail ends its reader at once", async () => {
  const hub = new SubscriberHub<Numbered>();
  const tail = hub.subscribe(0);
  const reading = collect(tail);
  tail.close();
  hub.publish({ seq: 1 });
  expect(await reading).toEqual([]);
});
