import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isAlive } from "../support/is-alive.ts";
import { bashLine, faultProject, killHard, startOffline } from "./support/fault-project.ts";
import { childrenOf, processesOf, waitUntil } from "./support/processes.ts";

describe("what is left when the kernel is killed", () => {
  test("[killed: plugin] plugin hosts, running commands and what left their group all end", async () => {
    const project = await faultProject();
    await project.write("note.txt", "a note\n");
    const run = startOffline(project, [
      'call read {"filePath":"note.txt"}',
      bashLine(
        "echo $$ >> pids; setsid sleep 600 & echo $! >> pids; sleep 600 & echo $! >> pids; wait",
      ),
      bashLine("trap '' TERM; echo $$ >> pids; sleep 600; sleep 600"),
    ]);
    const pids: number[] = [];
    await waitUntil(async () => {
      const text = await readFile(join(project.cwd, "pids"), "utf8").catch(() => "");
      pids.splice(0, pids.length, ...text.split("\n").filter(Boolean).map(Number));
      return pids.length === 4;
    }, "every command runs");
    const hosts = childrenOf(run.child.pid ?? 0);
    expect(hosts.length).toBeGreaterThan(0);
    await killHard(run);
    await waitUntil(() => ![...hosts, ...pids].some(isAlive), "hosts and commands have ended");
    await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");
  });
});
