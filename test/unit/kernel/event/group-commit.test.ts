import { expect, test } from "vitest";
import { GroupCommit } from "../../../../kernel/src/event/group-commit.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";

class SlowFile {
  syncs = 0;
  gate = createDeferred();
  sync(): Promise<void> {
    this.syncs += 1;
    return this.gate.promise;
  }
}

test("[S-247] who asks during a round shares the next one", async () => {
  const commits = new GroupCommit();
  const [first, second] = [new SlowFile(), new SlowFile()];
  const opening = commits.sync(first);
  await Promise.resolve();
  const waiting = [first, second, second, first, second].map((file) => commits.sync(file));
  await Promise.resolve();
  expect([first.syncs, second.syncs]).toEqual([1, 0]);
  first.gate.resolve();
  second.gate.resolve();
  await Promise.all([opening, ...waiting]);
  expect([first.syncs, second.syncs]).toEqual([2, 1]);
});

test("[S-247] all who ask in one turn of the event loop share its first round", async () => {
  const commits = new GroupCommit();
  const [first, second] = [new SlowFile(), new SlowFile()];
  const asked = [first, second, first].map((file) => commits.sync(file));
  await Promise.resolve();
  expect([first.syncs, second.syncs]).toEqual([1, 1]);
  first.gate.resolve();
  second.gate.resolve();
  await Promise.all(asked);
  expect([first.syncs, second.syncs]).toEqual([1, 1]);
});

test("[S-247] the failure of one file is not the failure of another", async () => {
  const commits = new GroupCommit();
  const [broken, whole] = [new SlowFile(), new SlowFile()];
  broken.gate.reject(new Error("EIO"));
  whole.gate.resolve();
  const results = await Promise.allSettled([commits.sync(broken), commits.sync(whole)]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
});
