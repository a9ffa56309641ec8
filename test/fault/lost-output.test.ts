import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { LAUNCHER, startCookie } from "../support/run-cookie.ts";
import type { TempProject } from "../support/temp-project.ts";
import { faultProject } from "./support/fault-project.ts";

/** Runs the command with a redirection of the shell. */
function redirected(project: TempProject, redirection: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(
    "/bin/bash",
    ["-c", `"$@" ${redirection}`, "bash", process.execPath, LAUNCHER, ...args],
    {
      cwd: project.cwd,
      env: { PATH: process.env["PATH"] ?? "", HOME: project.home },
      encoding: "utf8",
    },
  );
  return { exitCode: status, stdout, stderr };
}

const RUN = ["run", "-m", "offline/script", "say hello"];

describe.skipIf(!existsSync("/dev/full"))("output that cannot be written", () => {
  test.for([
    RUN,
    ["session", "list"],
    ["tool", "list"],
    ["--help"],
    ["run", "--help"],
    ["--version"],
  ])("%j says so and is no success", async (args) => {
    const project = await faultProject();
    const result = redirected(project, "> /dev/full", args);
    expect(result).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "error: stdout cannot be written (ENOSPC)\n",
    });
  });

  test("notices that are lost change nothing", async () => {
    const project = await faultProject();
    const result = redirected(project, "2> /dev/full", [...RUN, "--verbose"]);
    expect(result).toEqual({ exitCode: 0, stdout: "hello\n", stderr: "" });
  });
});

describe.skipIf(process.platform === "win32")("an output file that is a pipe", () => {
  test("nobody reads it: one signal ends the wait", async () => {
    const project = await faultProject();
    spawnSync("mkfifo", ["pipe"], { cwd: project.cwd });
    const run = startCookie(project, [...RUN, "--output-file", "pipe"]);
    // nothing shows that it waits for a reader; a signal that comes before that ends it just the same
    await new Promise((resolve) => setTimeout(resolve, 1500));
    run.child.kill("SIGINT");
    expect(await run.result).toMatchObject({ signal: "SIGINT", stdout: "" });
  });
});
