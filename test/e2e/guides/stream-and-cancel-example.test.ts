import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { RunCancel } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { isAlive } from "../../support/is-alive.ts";
import { openTestKernel } from "../../support/open-test-kernel.ts";
import { useProject } from "../../support/use-project.ts";
import { setUpExample } from "./set-up-example.ts";

test("stream-and-cancel does what its README says", async () => {
  const project = await useProject();
  const example = await setUpExample("stream-and-cancel", project);
  await project.writeState("config.toml", example.config);
  expect(await example.type(example.use)).toEqual({ exitCode: 0, printed: example.printed });
  const wrong = await example.type(example.use.replace('"greet"', '"constructor"'));
  expect(wrong.printed).toContain("there is no task constructor, only greet, wait");
});

test("[E-105] its output is seen while it runs, and a cancel ends the task with all that it started", async () => {
  const script = "sleep 600 & echo family $$ $!; trap '' TERM; wait; wait";
  const kernel = await openTestKernel({
    answers: [{ calls: [{ name: "run_task", arguments: { task: "family" } }] }],
    prepare: async (project) => {
      const { config } = await setUpExample("stream-and-cancel", project);
      const task = JSON.stringify(["/bin/sh", "-c", script]);
      await appendFile(join(project.stateDir, "config.toml"), `${config}family = ${task}\n`);
    },
  });
  const session = await kernel.createSession({ mode: "yolo" });
  const watch = kernel.watch(session);
  const runId = await kernel.start(session, "Go");
  const [, shell = "", child = ""] = /family (\d+) (\d+)\n/.exec(await watch.output("\n")) ?? [];
  const family = [Number(shell), Number(child)];
  expect(family.map(isAlive)).toEqual([true, true]);
  await kernel.client.request(RunCancel, { run_id: runId });
  const { payload } = await watch.event("tool_call_terminated");
  expect(payload).toMatchObject({
    outcome: "cancelled",
    error: { code: "cancelled" },
    result: { output: expect.stringContaining(`family ${shell} ${child}`) },
  });
  expect(family.map(isAlive)).toEqual([false, false]);
});
