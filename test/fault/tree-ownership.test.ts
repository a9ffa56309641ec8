import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { readLog } from "../support/session-log.ts";
import { bashLine, faultProject, killHard, start, startOffline } from "./support/fault-project.ts";
import { completeBytes, onlyLog, openEnds, sessionOf, whenLines } from "./support/log-lines.ts";
import { waitUntil } from "./support/processes.ts";

const foreign = (log: string) =>
  `error: session ${sessionOf(log)} is in use by another cookie process; wait until that one ends, or start a new session\n`;

describe("two processes and one session tree", () => {
  test("[two processes: opening, append] [S-082] [S-091] the second is refused at once and may only read", async () => {
    const project = await faultProject();
    const holder = startOffline(project, [
      bashLine("echo > running; until [ -e go ]; do sleep 0.02; done"),
    ]);
    await waitUntil(() => existsSync(join(project.cwd, "running")), "the command runs");
    const log = (await onlyLog(project)) ?? "";
    const resume = ["--resume-session", sessionOf(log)];
    const bytes = await readFile(log);

    const second = await startOffline(project, ["say mine"], resume).result;
    expect(second).toMatchObject({ exitCode: 5, stdout: "", stderr: foreign(log) });
    const shown = await start(project, ["session", "show", sessionOf(log)]).result;
    expect(shown).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("owned by another process"),
    });
    expect(await readFile(log)).toEqual(bytes);
    expect(holder.child.exitCode).toBeNull();

    await project.write("go", "");
    expect((await holder.result).exitCode).toBe(0);
    const third = await startOffline(project, ["say mine"], resume).result;
    expect(third).toMatchObject({ exitCode: 0, stdout: "mine\n", stderr: "" });
  });

  test("[two processes: opening] [S-082] of several that resume at the same time exactly one writes", async () => {
    const project = await faultProject();
    await startOffline(project, ["say first"]).result;
    const log = (await onlyLog(project)) ?? "";
    const hold = bashLine("echo $PPID >> winners; until [ -e go ]; do sleep 0.02; done");
    const racers = Array.from({ length: 4 }, () =>
      startOffline(project, [hold], ["--resume-session", sessionOf(log)]),
    );
    const isOver = () => racers.filter(({ child }) => child.exitCode !== null).length === 3;
    await waitUntil(isOver, "all but one are refused");
    await waitUntil(() => existsSync(join(project.cwd, "winners")), "one of them works");
    await project.write("go", "");
    const results = await Promise.all(racers.map(({ result }) => result));
    expect(results.map(({ exitCode }) => exitCode).sort()).toEqual([0, 5, 5, 5]);
    for (const { exitCode, stderr } of results)
      if (exitCode === 5) expect(stderr).toBe(foreign(log));
    const winners = await readFile(join(project.cwd, "winners"), "utf8");
    expect(winners.trim().split("\n")).toHaveLength(1);
    const events = await readLog(log);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  });

  test("[killed: opening] [B103] [S-082] after kill -9 of the holder resume works at once, whoever has its process id", async () => {
    const project = await faultProject();
    const holder = startOffline(project, [bashLine("echo > running; sleep 600")]);
    const log = await whenLines(project, 1, holder);
    await waitUntil(() => existsSync(join(project.cwd, "running")), "the command runs");
    await killHard(holder);
    const before = completeBytes(log);
    // a lock file with the id of a live process would block an owner that is known by its id
    await writeFile(join(dirname(log), "owner.lock"), `${process.pid}\n`);
    const resumed = await startOffline(project, ["say mine"], ["--resume-session", sessionOf(log)])
      .result;
    expect(resumed).toMatchObject({ exitCode: 0, stdout: "mine\n", stderr: "" });
    expect(completeBytes(log).subarray(0, before.byteLength).equals(before)).toBe(true);
    expect(openEnds(await readLog(log))).toEqual({ runs: [], calls: [] });
  });
});
