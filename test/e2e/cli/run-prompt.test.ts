import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCookie, startCookie } from "../../support/run-cookie.ts";
import { findLogs } from "../../support/session-log.ts";
import { useProject } from "../../support/use-project.ts";

const OFFLINE = ["run", "-m", "offline/script"] as const;

describe("the prompt of cookie run", () => {
  test.for([
    ["an argument", ["say hi"], ""],
    ["--prompt", ["--prompt", "say hi"], ""],
    ["-p", ["-p", "say hi"], "say something else"],
    ["an argument -", ["-"], "say hi"],
    ["--prompt -", ["--prompt=-"], "say hi"],
    ["--prompt-file -", ["-f", "-"], "say hi"],
    ["--prompt-file", ["--prompt-file", "prompt.txt"], "say something else"],
  ] as const)("[C-219] comes from %s", async ([, args, stdin]) => {
    const project = await useProject();
    await project.write("prompt.txt", "say hi");

    const result = await runCookie(project, [...OFFLINE, ...args], { stdin });

    expect(result).toMatchObject({ exitCode: 0, stdout: "hi\n", stderr: "" });
  });

  test.for([
    [[], "a prompt is needed"],
    [["-p", "a", "-f", "prompt.txt"], "give the prompt once"],
    [["-p", "a", "b"], "give the prompt once"],
  ] as const)("[C-219] %j is not exactly one source, a usage error", async ([args, message]) => {
    const result = await runCookie(await useProject(), [...OFFLINE, ...args], { stdin: "say hi" });

    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(message);
  });

  test.for([
    ["an empty prompt", ["   "], "the prompt is empty; write what is to be done"],
    ["a missing file", ["-f", "nothing.txt"], "--prompt-file: nothing.txt cannot be read (ENOENT)"],
    ["a directory", ["-f", "."], "--prompt-file: . cannot be read (EISDIR)"],
    ["a file that is no text", ["-f", "bytes.bin"], "--prompt-file: bytes.bin is not UTF-8 text"],
  ] as const)("[C-226] %s ends with 5 before a session exists", async ([, args, message]) => {
    const project = await useProject();
    await project.write("bytes.bin", new Uint8Array([0xff, 0xfe, 0x41]));

    const result = await runCookie(project, [...OFFLINE, ...args]);

    expect(result).toMatchObject({ exitCode: 5, stdout: "", stderr: `error: ${message}\n` });
    expect(await findLogs(project)).toEqual([]);
  });

  test("[C-261] [B139] a run with a prompt argument starts although stdin stays open", async () => {
    const { child, result } = startCookie(await useProject(), [...OFFLINE, "say hi"], {
      stdin: null,
    });

    expect(await result).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    child.stdin.destroy();
  });

  test("[C-226] an output file that cannot be written ends with 5", async () => {
    const project = await useProject();
    const file = join(project.cwd, "missing", "out.txt");

    const result = await runCookie(project, [...OFFLINE, "--output-file", file, "say hi"]);

    expect(result).toMatchObject({ exitCode: 5, stdout: "" });
    expect(result.stderr).toBe(`error: --output-file: ${file} cannot be written (ENOENT)\n`);
    expect(await findLogs(project)).toEqual([]);
  });
});

describe("options of cookie run", () => {
  test.for([
    ["--max-turns", "0"],
    ["--max-turns", "many"],
    ["--max-turns", "99999999999999999999"],
    ["--timeout", "0"],
    ["--timeout", "9999999999"],
    ["--output", "xml"],
    ["--permission-mode", "sometimes"],
    ["--allowed-tools", "read,webfetch"],
    ["--allowed-tools", "message"],
    ["--allowed-tools", ""],
    ["--allowed-tools", " ,"],
    ["--model", ""],
  ])("[C-226] %s %j is a usage error that names the option", async ([option, value]) => {
    const result = await runCookie(await useProject(), ["run", option ?? "", value ?? "", "hi"]);

    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/^error: [^\n]+\n$/);
    expect(result.stderr).toContain(option);
  });

  test.for([
    [["--json", "-o", "text"], "--json and --output exclude each other"],
    [["-o", "none", "--output-file", "x"], "--output-file and --output none exclude each other"],
  ] as const)("[C-226] %j exclude each other", async ([args, message]) => {
    const result = await runCookie(await useProject(), ["run", ...args, "hi"]);

    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(message);
  });
});
