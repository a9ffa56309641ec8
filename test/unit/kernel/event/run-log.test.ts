import { CookieError, type EventPayload } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import { RunLog } from "../../../../kernel/src/event/run-log.ts";
import { createGate } from "../../../support/gate.ts";

/** A record that keeps its blocks, or refuses them. */
class Blocks {
  readonly blocks: string[][] = [];
  failure: Error | undefined;
  /** An input that must not be said. */
  refused: string | undefined;
  /** What a block waits for before it is kept. */
  disk: Promise<void> = Promise.resolve();

  async append(drafts: readonly EventDraft[]): Promise<void> {
    await this.disk;
    if (this.failure !== undefined) throw this.failure;
    const block = drafts.map(({ payload }) => (payload as { input: string }).input);
    if (block.includes(this.refused ?? "")) throw new CookieError("engine", "it must not follow");
    this.blocks.push(block);
  }

  appendStream(draft: EventDraft): void {
    this.blocks.push([`stream ${draft.payload.type}`]);
  }
}

const said = (input: string): EventDraft => ({
  runId: null,
  payload: { type: "user_input_submitted", input } satisfies EventPayload,
});

test("[S-046] what is held becomes durable in one block with what follows it, in order", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  log.hold([said("a")]);
  log.hold([said("b"), said("c")]);
  expect(record.blocks).toEqual([]);
  await log.append([said("d")]);
  await log.append([said("e")]);
  expect(record.blocks).toEqual([["a", "b", "c", "d"], ["e"]]);
});

test("[S-046] a flush records what is held, once", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  await log.flush();
  log.hold([said("a")]);
  await Promise.all([log.flush(), log.flush()]);
  expect(record.blocks).toEqual([["a"]]);
});

test("[S-046] whoever flushes waits for what another flush is still recording", async () => {
  const record = new Blocks();
  const disk = createGate();
  record.disk = disk.opened;
  const log = new RunLog(record);
  log.hold([said("a")]);
  const first = log.flush();
  let isDurable = false;
  const second = log.flush().then(() => {
    isDurable = true;
  });
  await new Promise(setImmediate);
  expect(isDurable).toBe(false);
  disk.open();
  await Promise.all([first, second]);
  expect(record.blocks).toEqual([["a"]]);
});

test("[S-046] what is flushed while a long record is under way comes after it", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  const names = Array.from({ length: 200 }, (_, index) => String(index));
  await Promise.all([log.append(names.map(said)), log.append([said("after")])]);
  expect(record.blocks.flat()).toEqual([...names, "after"]);
});

test("[S-047] what could not be recorded is told to whoever made it durable and is not kept for later", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  record.failure = new Error("disk");
  log.hold([said("a")]);
  await expect(log.append([said("b")])).rejects.toThrow("disk");
  record.failure = undefined;
  await log.append([said("c")]);
  expect(record.blocks).toEqual([["c"]]);
});

test("[S-047] what is lost by somebody beside the run is told to the run as well, once", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  record.failure = new Error("disk");
  log.hold([said("of the run")]);
  const beside = log.beside.flush();
  // The run goes on before anybody knows.
  const next = log.append([said("after")]);
  await expect(beside).rejects.toThrow("disk");
  record.failure = undefined;
  await expect(next).rejects.toThrow("disk");
  await log.append([said("later")]);
  expect(record.blocks).toEqual([["later"]]);
});

test("[S-047] a disk that comes back at once does not let the run go on over what is lost", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  record.failure = new Error("disk");
  log.hold([said("of the run")]);
  await expect(log.beside.flush()).rejects.toThrow("disk");
  record.failure = undefined;
  await expect(log.append([said("after")])).rejects.toThrow("disk");
  expect(record.blocks).toEqual([]);
});

test("a flush beside the run that loses nothing of it leaves the run alone", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  record.failure = new Error("disk");
  log.hold([said("of the run")]);
  const own = log.flush();
  await expect(log.beside.flush()).rejects.toThrow("disk");
  await expect(own).rejects.toThrow("disk");
  record.failure = undefined;
  await log.append([said("after")]);
  expect(record.blocks).toEqual([["after"]]);
});

test("[S-063] a block leaves room in the queue of a subscriber, who may read between two", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  const whenRead: number[] = [];
  setImmediate(() => {
    whenRead.push(record.blocks.length);
  });
  const names = Array.from({ length: 300 }, (_, index) => String(index));
  await log.append(names.map(said));
  expect(record.blocks.flat()).toEqual(names);
  expect(Math.max(...record.blocks.map(({ length }) => length))).toBeLessThan(255);
  expect(record.blocks.length).toBeGreaterThan(1);
  expect(whenRead).toEqual([1]);
});

test("[S-048] an event that must not follow takes nothing with it that was held before", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  record.refused = "c";
  log.hold([said("a"), said("b")]);
  await expect(log.append([said("c"), said("d")])).rejects.toMatchObject({ code: "engine" });
  expect(record.blocks).toEqual([["a"], ["b"]]);
  expect(log.held).toEqual([]);
  await log.append([said("e")]);
  expect(record.blocks.at(-1)).toEqual(["e"]);
});

test("[S-047] of a block that the disk refuses nothing is recorded by itself", async () => {
  const record = new Blocks();
  const log = new RunLog(record);
  record.failure = new CookieError("storage_failed", "no space");
  await expect(log.append([said("a"), said("b")])).rejects.toMatchObject({
    code: "storage_failed",
  });
  record.failure = undefined;
  await log.append([said("c")]);
  expect(record.blocks).toEqual([["c"]]);
});
