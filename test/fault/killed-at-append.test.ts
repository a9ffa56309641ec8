import { describe, expect, onTestFinished, test } from "vitest";
import { startModelServer } from "../support/model-server.ts";
import { configure } from "../support/open-test-kernel.ts";
import { faultProject } from "./support/fault-project.ts";
import { expectIntact } from "./support/intact-session.ts";
import { KILL_MOMENTS, type KillMoment, startKernelProcess } from "./support/kernel-process.ts";
import { processesOf, waitUntil } from "./support/processes.ts";
import { SCRIPT_AGENTS, ScriptedSession, scriptAnswers } from "./support/scripted-session.ts";

const EVERY_MOMENT = process.env["COOKIE_FAULT_RUNS"] === "all";

describe("a kernel that is killed at an append", () => {
  test.for(KILL_MOMENTS.map((when, index) => [when, index] as const))(
    "[killed: append, sync, approval, tool call, grants, compaction] [S-095] [S-097] [S-098] [S-249] SIGKILL at every append of a script (%s) loses nothing that a client was told",
    { timeout: 600_000 },
    async ([when, index]) => {
      const step = EVERY_MOMENT ? 1 : KILL_MOMENTS.length + 1;
      let at = 1 + index;
      while (await strike(at, when)) at += step;
      expect(at).toBeGreaterThan(20);
    },
  );
});

/** False when the script has fewer appends. */
async function strike(at: number, when: KillMoment): Promise<boolean> {
  const project = await faultProject();
  const server = await startModelServer();
  onTestFinished(() => server.close());
  const gates = scriptAnswers(server);
  await configure(project, server, { agents: SCRIPT_AGENTS });
  await project.write("note.txt", "a note\n");
  const { child, client, gone } = await startKernelProcess(project, { at, when });
  const session = new ScriptedSession(client, gates);
  await session.play();
  child.stdin?.end();
  const signal = await gone;
  await waitUntil(() => processesOf(project).length === 0, "nothing of the kernel is left");
  try {
    await expectIntact({ project, server, lost: "process" }, session);
  } catch (error) {
    throw new Error(`killed ${when} append ${at}`, { cause: error });
  }
  return signal === "SIGKILL";
}
