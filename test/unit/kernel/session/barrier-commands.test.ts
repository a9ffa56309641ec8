import { isCookieError } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { BarrierCommands } from "../../../../kernel/src/session/barrier-commands.ts";
import { createGate } from "../../../support/gate.ts";

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: unknown) => (isCookieError(error) ? error.code : "other"),
  );

test("while a session is summarized, of each kind of command one waits", async () => {
  const barriers = new BarrierCommands();
  const gate = createGate();
  const compaction = barriers.run("compact", () => gate.opened);
  const revert = barriers.run("revert", () => gate.opened);
  expect(barriers.isCompacting).toBe(true);
  expect(await codeOf(barriers.run("compact", () => Promise.resolve()))).toBe("busy");
  expect(await codeOf(barriers.run("revert", () => Promise.resolve()))).toBe("busy");
  gate.open();
  await Promise.all([compaction, revert]);
  expect(barriers.isCompacting).toBe(false);
  expect(await codeOf(barriers.run("compact", () => Promise.resolve()))).toBe("done");
});

test("a command that fails lets the next one through", async () => {
  const barriers = new BarrierCommands();
  const failing = barriers.run("compact", () => Promise.reject(new Error("no")));
  expect(await codeOf(failing)).toBe("other");
  expect(await codeOf(barriers.run("compact", () => Promise.resolve()))).toBe("done");
});

test("without a compaction nothing is refused", async () => {
  const barriers = new BarrierCommands();
  const gate = createGate();
  const first = barriers.run("revert", () => gate.opened);
  expect(await codeOf(barriers.run("revert", () => Promise.resolve()))).toBe("done");
  gate.open();
  await first;
});
