import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  FEED_CLASSES,
  type FeedClass,
  type FeedItem,
  FeedQueue,
} from "../../../../kernel/src/plugin/feed-queue.ts";

interface Item extends FeedItem {
  readonly name: string;
}

const item = (name: string, feedClass: FeedClass, byteLength = 1): Item => ({
  name,
  class: feedClass,
  byteLength,
});
const namesOf = (items: readonly Item[]) => items.map(({ name }) => name);

function drain(queue: FeedQueue<Item>): Item[] {
  const items: Item[] = [];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) items.push(next);
  return items;
}

/** A full queue of these, `a`, `b`, `c` and so on. */
function fullOf(classes: readonly FeedClass[]): FeedQueue<Item> {
  const queue = new FeedQueue<Item>({ items: classes.length, bytes: 1_000_000 });
  classes.forEach((each, index) => {
    expect(queue.push(item("abcdef"[index] ?? "", each))).toEqual([]);
  });
  return queue;
}

describe("a full queue", () => {
  test.for<[FeedClass, readonly FeedClass[], string]>([
    ["chunk", ["ordinary", "chunk", "chunk"], "b"],
    ["chunk", ["ordinary", "terminal"], "new"],
    ["ordinary", ["ordinary", "chunk", "terminal"], "b"],
    ["ordinary", ["terminal", "ordinary", "ordinary"], "b"],
    ["ordinary", ["terminal", "terminal"], "new"],
    ["terminal", ["terminal", "ordinary", "chunk"], "c"],
    ["terminal", ["terminal", "ordinary", "ordinary"], "b"],
    ["terminal", ["terminal", "terminal"], "a"],
  ])("[E-143] [S-239] for a %s it gives up of %j the item %s", ([arriving, queued, lost]) => {
    const queue = fullOf(queued);
    expect(namesOf(queue.push(item("new", arriving)))).toEqual([lost]);
    const rest = [..."abcdef".slice(0, queued.length), "new"].filter((name) => name !== lost);
    expect(namesOf(drain(queue))).toEqual(rest);
  });

  test("news of a loss takes no other's place", () => {
    const queue = fullOf(["chunk", "ordinary"]);
    expect(namesOf(queue.push({ ...item("new", "ordinary"), yields: true }))).toEqual(["new"]);
    expect(namesOf(drain(queue))).toEqual(["a", "b"]);
  });

  test("one that is full of bytes gives up as many as it must; one large item alone always fits", () => {
    const queue = new FeedQueue<Item>({ items: 100, bytes: 10 });
    for (const name of ["a", "b", "c"]) queue.push(item(name, "ordinary", 3));
    expect(namesOf(queue.push(item("d", "ordinary", 6)))).toEqual(["a", "b"]);
    expect(namesOf(queue.push(item("e", "terminal", 1000)))).toEqual(["c", "d"]);
    expect(namesOf(drain(queue))).toEqual(["e"]);
  });
});

describe("whatever arrives and whenever it is read", () => {
  const step = fc.oneof(
    fc.record({
      class: fc.constantFrom(...FEED_CLASSES),
      byteLength: fc.integer({ min: 0, max: 12 }),
      yields: fc.boolean(),
    }),
    fc.constant("read" as const),
  );
  const bounds = fc.record({
    items: fc.integer({ min: 1, max: 6 }),
    bytes: fc.integer({ min: 10, max: 40 }),
  });

  test("[E-144] what is read keeps the order of arrival, and read, waiting and dropped are what arrived", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), bounds, (steps, limits) => {
        const queue = new FeedQueue<Item>(limits);
        const arrived: string[] = [];
        const read: string[] = [];
        const dropped: string[] = [];
        for (const next of steps) {
          if (next === "read") {
            const taken = queue.shift();
            if (taken !== undefined) read.push(taken.name);
          } else {
            const name = String(arrived.length).padStart(3, "0");
            arrived.push(name);
            dropped.push(...namesOf(queue.push({ name, ...next })));
          }
          expect(queue.size).toBeLessThanOrEqual(limits.items);
          expect(queue.size).toBe(arrived.length - read.length - dropped.length);
        }
        read.push(...namesOf(drain(queue)));
        expect(read).toEqual([...read].sort());
        expect([...read, ...dropped].sort()).toEqual(arrived);
      }),
    );
  });

  test("[E-143] it gives up what the table says, step by step", () => {
    const evicts = { chunk: 1, ordinary: 2, terminal: 3 };
    const classes = fc.array(fc.constantFrom(...FEED_CLASSES), { maxLength: 40 });
    fc.assert(
      fc.property(classes, fc.integer({ min: 1, max: 5 }), (arriving, items) => {
        const queue = new FeedQueue<Item>({ items, bytes: 1_000_000 });
        let model: Item[] = [];
        arriving.forEach((each, index) => {
          const next = item(String(index), each);
          const dropped = queue.push(next);
          if (model.length === items) {
            const victim = FEED_CLASSES.slice(0, evicts[each])
              .map((lane) => model.find((queued) => queued.class === lane))
              .find((found) => found !== undefined);
            expect(dropped).toEqual([victim ?? next]);
            model = [...model, next].filter((queued) => queued !== (victim ?? next));
          } else {
            expect(dropped).toEqual([]);
            model = [...model, next];
          }
        });
        expect(drain(queue)).toEqual(model);
      }),
    );
  });
});
