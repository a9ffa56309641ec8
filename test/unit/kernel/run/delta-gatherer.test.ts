import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { DeltaGatherer } from "../../../../kernel/src/run/delta-gatherer.ts";

test("deltas of one turn of the event loop are one, in order of their kinds", async () => {
  const emitted: string[] = [];
  const gatherer = new DeltaGatherer((kind, text) => emitted.push(`${kind} ${text}`));
  gatherer.add("reasoning_delta", "a");
  gatherer.add("reasoning_delta", "b");
  gatherer.add("text_delta", "c");
  expect(emitted).toEqual(["reasoning_delta ab"]);
  await setImmediate();
  gatherer.add("text_delta", "d");
  gatherer.flush();
  gatherer.flush();
  expect(emitted).toEqual(["reasoning_delta ab", "text_delta c", "text_delta d"]);
});

test("what a later burst meets is thrown to the caller, not to the event loop", async () => {
  const refused = new Error("refused");
  const gatherer = new DeltaGatherer(() => {
    throw refused;
  });
  gatherer.add("text_delta", "a");
  await setImmediate();
  expect(() => gatherer.flush()).toThrow(refused);
});
