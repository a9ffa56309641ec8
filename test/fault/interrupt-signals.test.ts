import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { payloadsOf, readLog } from "../support/session-log.ts";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";
import { onlyLog, openEnds, sessionOf } from "./support/log-lines.ts";
import { processesOf, waitUntil } from "./support/processes.ts";

describe("a run that is asked to stop", () => {
  test.for(["SIGINT", "SIGTERM"] as const)(
    "[C-223] ends with run_cancelled and leaves nothing to repair (%s)",
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
});
