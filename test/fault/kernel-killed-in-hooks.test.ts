import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { HookName } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { delivered, writeHookPlugins } from "../support/hook-plugin.ts";
import { readLog } from "../support/session-log.ts";
import { faultProject, startRun, withModel } from "./support/fault-project.ts";
import { onlyLog, openEnds, sessionOf } from "./support/log-lines.ts";
import { pairingProblems } from "./support/paired-results.ts";
import { processesOf, waitUntil } from "./support/processes.ts";

const SCRIPTED = ["-m", "custom.test/scripted"];

/** Ends its kernel in the middle of the hook; the plugin of the next kernel leaves everything as it is. */
function killOnce(): unknown {
  const { existsSync, writeFileSync } = process.getBuiltinModule("node:fs");
  const { MARK = "", ANSWER = "" } = process.env;
  if (existsSync(MARK)) return JSON.parse(ANSWER);
  writeFileSync(MARK, "");
  process.kill(process.ppid, "SIGKILL");
  return new Promise(() => undefined);
}

const ALLOW = { action: "allow" };
const KEEP = { action: "keep" };

describe("a kernel that is killed while a plugin looks", () => {
  test.for<readonly [HookName, answer: object, ran: string]>([
    ["user_before_input", ALLOW, "ran\n"],
    ["model_before_select", ALLOW, "ran\n"],
    ["agent_before_start", {}, "ran\n"],
    ["model_before_request", KEEP, "ran\n"],
    ["provider_before_headers", {}, "ran\n"],
    ["provider_before_request", KEEP, "ran\n"],
    ["provider_after_response", {}, ""],
    ["message_end", KEEP, ""],
    ["tool_before_call", ALLOW, ""],
    ["tool_after_result", KEEP, "ran\n"],
  ])(
    "[killed: plugin] [E-161] [S-095] [S-097] [T-043] at %s repeats no call, and its session goes on",
    async ([hook, answer, ran]) => {
      const project = await faultProject();
      const server = await withModel(project, "openai-chat", {
        calls: [{ name: "bash", arguments: { command: "echo ran >> marks" } }],
      });
      server.otherwise({ text: "Done." });
      const mark = join(project.stateDir, "killed");
      await writeHookPlugins(project, [
        {
          name: "guard",
          hooks: { [hook]: killOnce },
          keys: `required = true\nenv = { MARK = ${JSON.stringify(mark)}, ANSWER = '${JSON.stringify(answer)}' }`,
        },
      ]);
      const first = await startRun(project, "Work.", SCRIPTED).result;
      expect(first.signal).toBe("SIGKILL");
      expect(await delivered(project)).toHaveLength(1);
      await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");

      const log = await onlyLog(project);
      const goOn = log === undefined ? [] : ["--resume-session", sessionOf(log)];
      const resumed = await startRun(project, "Go on.", [...SCRIPTED, ...goOn]).result;
      expect(resumed).toMatchObject({ exitCode: 0, stdout: "Done.\n", stderr: "" });
      expect(await readFile(join(project.cwd, "marks"), "utf8").catch(() => "")).toBe(ran);
      expect(server.requests.flatMap(pairingProblems)).toEqual([]);
      const ended = await onlyLog(project);
      expect(ended && openEnds(await readLog(ended))).toEqual({ runs: [], calls: [] });
    },
  );
});
