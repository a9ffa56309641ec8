import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { runCookie, startCookie } from "../../support/run-cookie.ts";
import { findLogs } from "../../support/session-log.ts";
import { useProject } from "../../support/use-project.ts";

describe("cookie", () => {
  test("[C-213] --version prints the version and nothing else", async () => {
    const project = await useProject();
    const file = new URL("../../../cli/package.json", import.meta.url);
    const { version } = JSON.parse(await readFile(file, "utf8")) as { version: string };

    const result = await runCookie(project, ["--version"]);

    expect(result).toMatchObject({ exitCode: 0, stdout: `${version}\n`, stderr: "" });
  });

  test.for([
    [["--help"], "COMMANDS"],
    [["help", "run"], "--permission-mode"],
    [["run", "--help"], "--permission-mode"],
    [["session", "--help"], "session list"],
    [["session", "list", "--help"], "--limit"],
    [["session", "show", "--help"], "session id"],
    [["tool", "list", "--help"], "EFFECT"],
    [["doctor", "--help"], "--network"],
    [["trust", "--help"], "--revoke"],
  ] as const)("[C-213] help of %j exits 0 and names its options", async ([args, text]) => {
    const result = await runCookie(await useProject(), args);

    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    expect(result.stdout).toContain(text);
  });

  test.for([
    [["sesion", "list"], 'error: unknown command "sesion"; did you mean session?\n'],
    [["session", "lst"], 'error: unknown command "session lst"; did you mean session list?\n'],
    [["tool"], "error: tool is not complete; it goes on with list\n"],
    [["sesion", "--help"], 'error: unknown command "sesion"; did you mean session?\n'],
    [["help", "rnu"], 'error: unknown command "rnu"; did you mean run?\n'],
    [["version"], 'error: unknown command "version"; did you mean --version?\n'],
    [["frobnicate"], 'error: unknown command "frobnicate"; `cookie --help` lists the commands\n'],
    [["run", "--modle", "x", "hi"], "error: unknown option --modle; did you mean --model?\n"],
    [
      ["run", "hello", "world"],
      'error: unexpected argument "world"; put quotes around a value with spaces\n',
    ],
    [["session", "show"], "error: the argument <id> is missing\n"],
    [["--json"], undefined],
  ] as const)("[C-213] [C-226] %j is a usage error in one line", async ([args, stderr]) => {
    const result = await runCookie(await useProject(), args);

    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    if (stderr !== undefined) expect(result.stderr).toBe(stderr);
  });

  test("[C-213] options may stand before and between the words of a command", async () => {
    const project = await useProject();

    const run = await runCookie(project, ["-m", "offline/script", "-ojson", "run", "say hi"]);
    const list = await runCookie(project, ["session", "--json", "list"]);

    expect(run.exitCode).toBe(0);
    expect(JSON.parse(list.stdout)).toMatchObject({ sessions: [{ status: "completed" }] });
  });

  test("[C-213] with --json an error is one JSON document on stderr", async () => {
    const result = await runCookie(await useProject(), ["trust", "--lst", "--json"]);

    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(JSON.parse(result.stderr)).toEqual({
      error: { code: "usage", message: "unknown option --lst; did you mean --list?" },
    });
  });

  test("a stack appears only with COOKIE_DEBUG=1", async () => {
    const project = await useProject();

    const plain = await runCookie(project, ["session", "show", "nobody"]);
    const debugging = await runCookie(project, ["session", "show", "nobody"], {
      env: { COOKIE_DEBUG: "1" },
    });

    expect(plain).toMatchObject({ exitCode: 1 });
    expect(plain.stderr).toMatch(/^error: [^\n]+\n$/);
    expect(debugging.stderr).toMatch(/\n {4}at /);
  });

  test("[C-005] without a home directory the error says what to set", async () => {
    const project = await useProject();

    const result = await runCookie(project, ["session", "list"], { env: { HOME: "" } });

    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toContain("set HOME");
  });

  test("a reader that goes away ends the output without a stack trace", async () => {
    const project = await useProject();
    const { child, printed, result } = startCookie(project, ["run", "--help"]);
    child.stdout.destroy();
    await result;

    expect(printed.stderr).toBe("");
    expect(await findLogs(project)).toEqual([]);
  });
});
