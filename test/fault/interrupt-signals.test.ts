import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { TOO_LONG } from "../support/bounded-model.ts";
import { delivered, writeHookPlugins } from "../support/hook-plugin.ts";
import { agentDocument } from "../support/open-test-kernel.ts";
import type { CookieProcess } from "../support/run-cookie.ts";
import { CAN_OPEN_TERMINAL, runInTerminal } from "../support/run-in-terminal.ts";
import { type LoggedEvent, payloadsOf, readLog } from "../support/session-log.ts";
import type { TempProject } from "../support/temp-project.ts";
import {
  bashLine,
  faultProject,
  start,
  startOffline,
  startRun,
  withModel,
} from "./support/fault-project.ts";
import { onlyLog, openEnds, openQuestions, sessionOf } from "./support/log-lines.ts";
import { processesOf, waitUntil } from "./support/processes.ts";

describe("a run that is asked to stop", () => {
  test.for(["SIGINT", "SIGTERM"] as const)(
    "[signal: tool call] [C-223] ends with run_cancelled and leaves nothing to repair (%s)",
    async (signal) => {
      const project = await faultProject();
      const run = startOffline(project, [bashLine("echo partial; echo > running; sleep 600")]);
      await waitUntil(() => existsSync(join(project.cwd, "running")), "the command runs");
      run.child.kill(signal);
      expect(await run.result).toMatchObject({
        exitCode: 4,
        stdout: "",
        stderr: "error: cancelled by the user\n",
      });
      await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");

      const log = (await onlyLog(project)) ?? "";
      const events = await readLog(log);
      expect(openEnds(events)).toEqual({ runs: [], calls: [] });
      expect(events.at(-1)?.payload).toEqual({ type: "run_cancelled", reason: "user" });
      expect(payloadsOf(events, "tool_call_terminated")).toMatchObject([
        { outcome: "cancelled", error: { code: "cancelled" } },
      ]);

      const resumed = startOffline(project, ["say hello"], ["--resume-session", sessionOf(log)]);
      expect(await resumed.result).toMatchObject({ exitCode: 0, stdout: "hello\n" });
      const added = (await readLog(log)).slice(events.length);
      expect(added[0]?.payload.type).toBe("run_started");
      expect(payloadsOf(added, "run_interrupted")).toEqual([]);
    },
  );

  test.runIf(CAN_OPEN_TERMINAL)(
    "[signal: tool call] [C-223] a terminal that closes ends it in the same way",
    async () => {
      const project = await faultProject();
      const held = bashLine("echo partial; echo > running; sleep 600");
      await runInTerminal(
        project,
        ["run", "-m", "offline/script", "--permission-mode", "yolo", held],
        { closeAfter: "sleep 600" },
      );
      await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");
      const events = await readLog((await onlyLog(project)) ?? "");
      expect(openEnds(events)).toEqual({ runs: [], calls: [] });
      expect(events.at(-1)?.payload).toEqual({ type: "run_cancelled", reason: "user" });
      expect(readdirSync(join(project.stateDir, "run"))).toEqual([]);
    },
  );

  const never = { text: "Never.", until: new Promise(() => undefined) };

  test("[signal: approval] [C-223] while a model judges a call: nothing runs, and the approval is closed", async () => {
    const project = await faultProject();
    const server = await withModel(project, "openai-chat", {
      calls: [{ name: "bash", arguments: { command: "echo ran >> marks" } }],
    });
    server.answerAsides("approval", never);
    await project.writeState("agents/primary.md", agentDocument({ bash: "ask" }));
    const args = ["--agent", "primary", "-m", "custom.test/scripted"];
    const run = start(project, ["run", "--permission-mode", "auto-approve", ...args, "Work."]);
    await waitUntil(() => server.asides.length === 1, "the model is asked");
    const events = await expectCancelled(project, run);
    expect(payloadsOf(events, "approval_requested")).toHaveLength(1);
    expect(payloadsOf(events, "approval_finalized")).toMatchObject([
      { decision: { status: "cancelled" } },
    ]);
    expect(payloadsOf(events, "tool_call_terminated")).toMatchObject([{ outcome: "cancelled" }]);
    expect(existsSync(join(project.cwd, "marks"))).toBe(false);
  });

  test("[signal: plugin] [C-223] while a plugin looks at a call: the call does not run", async () => {
    const project = await faultProject();
    await withModel(project, "openai-chat", {
      calls: [{ name: "bash", arguments: { command: "echo ran >> marks" } }],
    });
    await writeHookPlugins(project, [
      { name: "guard", hooks: { tool_before_call: (_facts, { never: wait }) => wait() } },
    ]);
    const run = startRun(project, "Work.", ["-m", "custom.test/scripted"]);
    await waitUntil(async () => (await delivered(project)).length > 0, "the plugin is asked");
    await expectCancelled(project, run);
    expect(existsSync(join(project.cwd, "marks"))).toBe(false);
  });

  test("[signal: compaction] [C-223] while a conversation is summarized: it stays as it was", async () => {
    const project = await faultProject();
    const server = await withModel(project, "openai-chat", READ_NOTE, TOO_LONG);
    server.answerAsides("context_compaction", never);
    await project.write("note.txt", "a note\n".repeat(500));
    const run = startRun(project, "Read my note.", ["-m", "custom.test/scripted"]);
    await waitUntil(() => server.asides.length === 1, "the summary is asked for");
    const events = await expectCancelled(project, run);
    expect(payloadsOf(events, "context_checkpoint_committed")).toEqual([]);
    expect(payloadsOf(events, "internal_agent_cancelled")).toHaveLength(1);
  });

  test("[C-223] a hang-up without a terminal, as under nohup, does not end it", async () => {
    const project = await faultProject();
    const run = startOffline(project, [
      bashLine("echo > running; until [ -e go ]; do sleep 0.02; done"),
      "---",
      "say done",
    ]);
    await waitUntil(() => existsSync(join(project.cwd, "running")), "the command runs");
    run.child.kill("SIGHUP");
    run.child.kill("SIGHUP");
    await project.write("go", "");
    expect(await run.result).toMatchObject({ exitCode: 0, stdout: "done\n", stderr: "" });
  });
});

/** A turn that reads, before the conversation is refused as too long. */
const READ_NOTE = { calls: [{ name: "read", arguments: { filePath: "note.txt" } }] };

/** Sends the signal and expects a run that ended with everything it had begun; yields its log. */
async function expectCancelled(project: TempProject, run: CookieProcess): Promise<LoggedEvent[]> {
  run.child.kill("SIGTERM");
  expect(await run.result).toMatchObject({ exitCode: 4, stdout: "" });
  await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");
  const events = await readLog((await onlyLog(project)) ?? "");
  expect(openEnds(events)).toEqual({ runs: [], calls: [] });
  expect(openQuestions(events)).toEqual([]);
  expect(events.at(-1)?.payload).toEqual({ type: "run_cancelled", reason: "user" });
  return events;
}
