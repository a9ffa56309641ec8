import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { startBash, useBash } from "./bash-fixture.ts";

const bash = useBash({
  env: {
    ...process.env,
    BASH_ENV: "/nowhere/bash-env",
    ENV: "/nowhere/env",
    SHELL: "/usr/bin/fish",
    INHERITED: "kept",
  },
});

describe("arguments", () => {
  test.for([
    { command: "" },
    { command: " \n\t" },
    { command: "true", timeout: -1 },
    { command: "true", timeout: 1.5 },
    { command: "true", interactive: "yes" },
    { command: "true", surplus: 1 },
    { command: "a\0b" },
  ])("[T-068] %j is refused", async (args) => {
    await expect(bash.plugin.call("bash", args).result).rejects.toMatchObject({
      code: "invalid_arguments",
    });
  });

  test.for([0, 120_000, 2 ** 53 - 1])(
    "[T-068] timeout %d lets a command end by itself",
    async (timeout) => {
      const { result } = await bash.run("sleep 0.05", { timeout });
      expect(result.metadata).toMatchObject({ status: 0 });
    },
  );
});

describe("surroundings", () => {
  test("[T-070] a command runs in the session's directory, without start-up files", async () => {
    const { stdout, stderr } = await bash.run(
      "pwd; shopt -q login_shell || echo no-login; echo $-",
    );
    expect(stdout).toBe(`${bash.workspace}\nno-login\nhBc\n`);
    expect(stderr).toBe("");
  });

  test("[T-070] it inherits the environment without BASH_ENV, ENV and the protocol's variable", async () => {
    const { stdout } = await bash.run(
      "echo $INHERITED [$BASH_ENV$ENV$COOKIE_PLUGIN_PROTOCOL]; printenv COOKIE_AGENT_CALL",
    );
    expect(stdout).toMatch(/^kept \[\]\n\d+\.[0-9a-f]{16}\/[0-9a-f-]{36}\n$/);
  });

  test("[B064] [T-070] bash is used whatever SHELL says, and the result says which", async () => {
    const { result, stdout } = await bash.run("true && [[ a == a ]] && echo yes; export X=1");
    expect(stdout).toBe("yes\n");
    expect(result.metadata).toMatchObject({
      status: 0,
      shell: expect.stringMatching(/^\/.*\/bash$/) as string,
    });
  });

  test("[B064] [T-070] without bash the error names the setting", async () => {
    const plugin = await startBash(bash.workspace, { env: { PATH: "/nowhere" } });
    const { result } = plugin.call("bash", { command: "true" });
    await expect(result).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringContaining('[plugins."builtin.bash".config] shell') as string,
    });
    await plugin.close();
  });

  test.for([
    ["bash", "must be an absolute path"],
    ["/nowhere/bash", "not an executable file"],
    ["/etc/passwd", "not an executable file"],
    ["/usr/bin", "not an executable file"],
  ] as const)("[T-070] the setting %s is refused: %s", async ([shell, reason]) => {
    const plugin = await startBash(bash.workspace, { config: { shell } });
    await expect(plugin.call("bash", { command: "true" }).result).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringContaining(reason) as string,
    });
    await plugin.close();
  });

  test("a missing working directory is execution_failed and named", async () => {
    const call = bash.start("true", {}, { cwd: "/nowhere/at/all" });
    await expect(call.result).rejects.toMatchObject({
      code: "execution_failed",
      message: "the working directory /nowhere/at/all does not exist",
    });
  });

  test("calls that never started keep no descriptor open", async () => {
    const descriptors = () => readdirSync(`/proc/${bash.plugin.pid}/fd`).length;
    await bash.run("true");
    const before = descriptors();
    for (let round = 0; round < 20; round += 1) {
      await bash.start("true", {}, { cwd: "/nowhere/at/all" }).result.catch(() => undefined);
      await bash.run("true");
    }
    expect(descriptors()).toBeLessThanOrEqual(before + 4);
  });

  test("a command too long for the system is execution_failed and says what to do", async () => {
    const call = bash.start(`: ${"x".repeat(1 << 20)}`);
    await expect(call.result).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringContaining("too long") as string,
    });
  });
});

describe("endings", () => {
  test("[T-073] any exit status is a completed result that tells it", async () => {
    const { result, stdout, stderr } = await bash.run("echo out; echo err >&2; exit 3");
    expect(result).toEqual({
      streamed: true,
      title: "Bash",
      display: "exit status 3",
      metadata: { status: 3, success: false, shell: expect.any(String) as string },
    });
    expect({ stdout, stderr }).toEqual({ stdout: "out\n", stderr: "err\n" });
  });

  test("[T-073] a shell ended by a signal has no status", async () => {
    const { result } = await bash.run("kill -SEGV $$");
    expect(result.metadata).toMatchObject({ status: null, success: false });
    expect(result.display).toBe("ended by SIGSEGV");
  });

  test("[T-074] stdout and stderr are two streams, and a silent one sends nothing", async () => {
    const call = bash.start("echo only >&2");
    await call.result;
    expect(call.deltas).toEqual([{ stream: "stderr", text: "only\n" }]);
  });

  test("[T-074] output can be written by name, as scripts do", async () => {
    const { stdout, stderr } = await bash.run(
      "echo a >/dev/stdout; echo b >/dev/stderr; echo c | tee /dev/stderr >/proc/self/fd/1",
    );
    expect({ stdout, stderr }).toEqual({ stdout: "a\nc\n", stderr: "b\nc\n" });
  });

  test("calls of one turn run side by side", async () => {
    const first = bash.start("until [ -e meet ]; do sleep 0.02; done; echo met; rm meet");
    const second = bash.start("touch meet; echo here");
    await Promise.all([first.result, second.result]);
    expect(first.output("stdout")).toBe("met\n");
  });
});

describe("standard input", () => {
  test("[B061] [T-076] a prompt sees the end of its input at once", async () => {
    const { result, stdout } = await bash.run(
      "read -p 'ok? ' x; status=$?; echo got:$x; exit $status",
    );
    expect(stdout).toBe("got:\n");
    expect(result.metadata).toMatchObject({ status: 1 });
  });

  test("[T-076] an interactive command reads what is sent until the end is sent", async () => {
    const call = bash.start("read a; echo first:$a; cat", { interactive: true }, { stdin: true });
    expect(await call.stdin("one\n", false)).toBe(true);
    await call.printed("first:one");
    expect(await call.stdin("two\n", true)).toBe(true);
    expect(await call.stdin("three\n", false)).toBe(false);
    expect((await call.result).metadata).toMatchObject({ status: 0 });
    expect(call.output("stdout")).toBe("first:one\ntwo\n");
    expect(await call.stdin("late", true)).toBe(false);
  });

  test("[T-076] a call that is not interactive has no channel", async () => {
    const call = bash.start("sleep 0.2");
    expect(await call.stdin("x", false)).toBe(false);
    await call.result;
  });

  test("[T-076] an interactive call without a channel sees the end at once", async () => {
    const call = bash.start("cat; echo end", { interactive: true }, { stdin: false });
    await call.result;
    expect(call.output("stdout")).toBe("end\n");
  });

  test("[T-076] a command that ends without reading its input is no error", async () => {
    const call = bash.start("exec 0<&-; exit 4", { interactive: true }, { stdin: true });
    await call.stdin("x".repeat(60_000), false);
    expect((await call.result).metadata).toMatchObject({ status: 4 });
  });
});
