import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CAN_OPEN_TERMINAL, runInTerminal } from "../support/run-in-terminal.ts";
import { payloadsOf, readLog } from "../support/session-log.ts";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";
import { onlyLog, openEnds, sessionOf } from "./support/log-lines.ts";
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
