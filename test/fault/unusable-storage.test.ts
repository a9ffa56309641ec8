import { execFileSync } from "node:child_process";
import { chmod, mkdir, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";
import { onlyLog, sessionOf } from "./support/log-lines.ts";
import { makeReadOnly, mountSmallDisk, noMount } from "./support/small-disk.ts";

describe("storage that cannot be used", () => {
  test.skipIf(noMount !== null)(
    "[read-only: publication] a read-only disk is named before any run starts",
    async () => {
      const project = await faultProject();
      const disk = mountSmallDisk(65536);
      makeReadOnly(disk);
      const result = await startOffline(project, ["say hello"], ["--data-dir", disk]).result;
      expect(result).toMatchObject({ exitCode: 5, stdout: "" });
      expect(result.stderr).toMatch(/^error: the session store .* cannot be used \(EROFS.*\n$/);
      expect(result.stderr).toContain(disk);
    },
  );

  test.skipIf(process.getuid?.() === 0)(
    "[storage gone: publication] a directory without permission is named",
    async () => {
      const project = await faultProject();
      const data = join(project.home, "data");
      await mkdir(data, { mode: 0o500 });
      onTestFinished(() => chmod(data, 0o700));
      const result = await startOffline(project, ["say hello"], ["--data-dir", data]).result;
      expect(result).toMatchObject({ exitCode: 5, stdout: "" });
      expect(result.stderr).toContain(data);
      expect(result.stderr).toContain("EACCES");
    },
  );

  test.skipIf(process.platform !== "linux")(
    "[storage gone: publication] a file system that makes no directories is named and not waited for",
    async () => {
      const project = await faultProject();
      const result = await startOffline(project, ["say hello"], ["--data-dir", "/proc/none/here"])
        .result;
      expect(result).toMatchObject({ exitCode: 5, stdout: "" });
      expect(result.stderr).toContain("/proc/none/here");
    },
  );

  test("[storage gone: publication] a file in the place of the directory is named", async () => {
    const project = await faultProject();
    await project.writeState("sessions", "not a directory");
    const result = await startOffline(project, ["say hello"]).result;
    expect(result).toMatchObject({ exitCode: 5, stdout: "" });
    expect(result.stderr).toContain(join(project.stateDir, "sessions"));
    expect(result.stderr).toContain("make it a directory");
  });

  test.skipIf(process.platform === "win32").for([
    ["a folder", "mkdir"],
    ["a pipe", "mkfifo"],
    ["a link to itself", "ln -s events.jsonl"],
  ] as const)(
    "[storage gone: opening] %s in the place of a session's log is named",
    async ([, make]) => {
      const project = await faultProject();
      await startOffline(project, ["say hello"]).result;
      const log = (await onlyLog(project)) ?? "";
      await rm(log);
      const [command = "", ...args] = make.split(" ");
      execFileSync(command, [...args, log]);
      const session = sessionOf(log);
      const resumed = startOffline(project, ["say hello"], ["--resume-session", session]);
      const { exitCode, stderr } = await resumed.result;
      expect(exitCode).toBe(5);
      expect(stderr).toContain(`the log of session ${session} cannot be opened (`);
    },
  );

  test.skipIf(process.platform === "win32")(
    "[storage gone: opening] a session folder that leads nowhere is named",
    async () => {
      const project = await faultProject();
      await startOffline(project, ["say hello"]).result;
      const folder = dirname((await onlyLog(project)) ?? "");
      await rm(folder, { recursive: true });
      await symlink(basename(folder), folder);
      const resumed = startOffline(project, ["say hello"], ["--resume-session", basename(folder)]);
      expect(await resumed.result).toMatchObject({
        exitCode: 5,
        stderr: expect.stringContaining(
          `the log of session ${basename(folder)} cannot be opened (`,
        ),
      });
    },
  );

  test.for(["session", "store"])(
    "[storage gone: append, tool call] a %s removed in mid-run fails the run, and the next one works",
    async (what) => {
      const project = await faultProject();
      const sessions = join(project.stateDir, "sessions");
      const target = what === "store" ? sessions : `${sessions}/*/0*`;
      const run = startOffline(project, [bashLine(`rm -r ${target}; echo removed`)]);
      const result = await run.result;
      expect(result).toMatchObject({ exitCode: 1, stdout: "" });
      expect(result.stderr).toContain("its log was removed");
      const next = await startOffline(project, ["say hello"]).result;
      expect(next).toMatchObject({ exitCode: 0, stdout: "hello\n", stderr: "" });
      expect(await onlyLog(project)).toBeDefined();
    },
  );
});
