import { expect, test } from "vitest";
import { StartLimiter } from "../../../../kernel/src/plugin/start-limiter.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";

test("[E-053] four starts run at once and one that a call waits for goes first", async () => {
  const limiter = new StartLimiter(4);
  const order: string[] = [];
  const ends = Array.from({ length: 4 }, () => createDeferred());
  const running = ends.map((end, index) =>
    limiter.run(
      () => {
        order.push(`early ${index}`);
        return end.promise;
      },
      () => false,
    ),
  );
  const later = (name: string, urgent: boolean) =>
    limiter.run(
      async () => {
        order.push(name);
      },
      () => urgent,
    );
  const waiting = [later("warm", false), later("called", true), later("warm too", false)];
  expect(order).toEqual(["early 0", "early 1", "early 2", "early 3"]);
  ends[2]?.resolve();
  await Promise.all(waiting);
  expect(order.slice(4)).toEqual(["called", "warm", "warm too"]);
  for (const end of ends) end.resolve();
  await Promise.all(running);
});

test("[E-053] a start that fails gives its place back", async () => {
  const limiter = new StartLimiter(1);
  await expect(
    limiter.run(
      () => Promise.reject(new Error("no")),
      () => false,
    ),
  ).rejects.toThrow("no");
  await expect(
    limiter.run(
      async () => "yes",
      () => false,
    ),
  ).resolves.toBe("yes");
});
