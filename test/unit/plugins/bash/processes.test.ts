import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { isAlive, startBash, useBash } from "./bash-fixture.ts";

const bash = useBash();

/** Every process a test leaves alive on purpose; ended after the tests. */
const kept: number[] = [];
afterAll(() => {
  for (const pid of kept.filter(isAlive)) process.kill(pid, "SIGKILL");
});

const pidIn = (text: string) => Number(/pid=(\d+)/.exec(text)?.[1]);

async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await delay(10);
}

describe("the shell's exit", () => {
  test("[B047] [T-072] ends children still in the group and says how many", async () => {
    const { result, stdout } = await bash.run(
      "(while :; do echo tick; sleep 0.1; done) & echo pid=$!; sleep 0.3; echo done",
    );
    expect(stdout).toMatch(/tick[\s\S]*done\n/);
    expect(result.metadata).toMatchObject({
      status: 0,
      note: expect.stringMatching(/^\d+ process(?:es)? still running/) as string,
    });
    expect(isAlive(pidIn(stdout))).toBe(false);
  });

  test("[B049] [T-189] leaves alone what left the group, names it and does not wait for it", async () => {
    const { result, stdout } = await bash.run("setsid sleep 300 & echo ok", { timeout: 2000 });
    const pid = Number(/pid (\d+)/.exec(String(result.metadata?.["note"]))?.[1]);
    kept.push(pid);
    expect(stdout).toBe("ok\n");
    expect(result.metadata).toMatchObject({ status: 0 });
    expect(readFileSync(`/proc/${pid}/cmdline`, "latin1")).toBe("sleep\u0000300\u0000");
  });

  test("a process that left the group is named once, however many threads it has", async () => {
    const script = "console.log('up'); setInterval(() => {}, 1000)";
    const { result } = await bash.run(
      `setsid "${process.execPath}" -e "${script}" > up 2>&1 & until [ -s up ]; do sleep 0.05; done`,
    );
    const note = String(result.metadata?.["note"]);
    kept.push(...Array.from(note.matchAll(/\d+/g), ([pid]) => Number(pid)));
    expect(note).toMatch(/: pid \d+$/);
  });

  test("a command that leaves nothing has no note", async () => {
    const { result } = await bash.run("sleep 0.05 & wait; echo ok");
    expect(result.metadata).toEqual({
      status: 0,
      success: true,
      shell: expect.any(String) as string,
    });
  });

  test("what was printed just before the exit arrives whole", async () => {
    const { stdout } = await bash.run("seq 1 100000");
    expect(stdout.length).toBe(588_895);
  });
});

describe("a timeout", () => {
  test("[B052] [T-071] keeps what was printed before", async () => {
    const call = bash.start("seq 1 100; (sleep 60; :) ", { timeout: 300 });
    await expect(call.result).rejects.toMatchObject({
      code: "timeout",
      message: expect.stringContaining("300 ms") as string,
    });
    expect(call.output("stdout").trim().split("\n")).toHaveLength(100);
  });

  test("[B050] [T-071] reaches descendants that ignore SIGTERM", async () => {
    const call = bash.start(`bash -c 'trap "" TERM; echo pid=$$; sleep 61 & sleep 62'`, {
      timeout: 400,
    });
    await expect(call.result).rejects.toMatchObject({ code: "timeout" });
    expect(isAlive(pidIn(call.output("stdout")))).toBe(false);
  });

  test("[B049] [T-071] [T-189] ends marked processes outside the group", async () => {
    const call = bash.start(
      `setsid bash -c 'trap "" TERM; echo pid=$$; while :; do sleep 1; done' & sleep 60`,
      { timeout: 500 },
    );
    await expect(call.result).rejects.toMatchObject({ code: "timeout" });
    const pid = pidIn(call.output("stdout"));
    expect(pid).toBeGreaterThan(0);
    expect(isAlive(pid)).toBe(false);
  });

  test("[T-071] a handler of SIGTERM may clean up and print", async () => {
    const call = bash.start(`trap 'echo cleaned; exit' TERM; while :; do sleep 0.05; done`, {
      timeout: 300,
    });
    await expect(call.result).rejects.toMatchObject({ code: "timeout" });
    expect(call.output("stdout")).toBe("cleaned\n");
  });
});

test("[B049] [T-071] [T-189] a cancel ends group and marked processes and answers cancelled", async () => {
  const call = bash.start("(setsid sleep 300 & echo pid=$!); echo pid2; sleep 300");
  await call.printed("pid2");
  const pid = pidIn(call.output("stdout"));
  call.cancel();
  await expect(call.result).rejects.toMatchObject({ code: "cancelled" });
  expect(isAlive(pid)).toBe(false);
});

test("a cancel that comes with the call runs nothing", async () => {
  const call = bash.start("touch started; sleep 5");
  call.cancel();
  await expect(call.result).rejects.toMatchObject({ code: "cancelled" });
});

describe("the kernel's exit", () => {
  test.for(["close", "hangUp"] as const)(
    "[B049] [T-189] %s ends running commands and what earlier ones left running",
    async (way) => {
      const plugin = await startBash(bash.workspace);
      const earlier = plugin.call("bash", { command: "setsid sleep 301 & echo ok" });
      const note = String((await earlier.result).metadata?.["note"]);
      const running = plugin.call("bash", {
        command: "(setsid sleep 302 &); echo pid=$$; sleep 303",
      });
      await running.printed("pid=");
      await plugin[way]();
      await gone(pidIn(running.output("stdout")));
      await gone(Number(/pid (\d+)/.exec(note)?.[1]));
    },
  );
});

test("a plugin process that is killed leaves its commands to the next one", async () => {
  const killed = await startBash(bash.workspace);
  const running = killed.call("bash", { command: "(setsid sleep 304 &); echo pid=$$; sleep 305" });
  running.result.catch(() => undefined);
  await running.printed("pid=");
  process.kill(killed.pid, "SIGKILL");
  const shell = pidIn(running.output("stdout"));
  expect(isAlive(shell)).toBe(true);
  const next = await startBash(bash.workspace);
  await gone(shell);
  await next.close();
  await killed.close().catch(() => undefined);
});

test("[T-070] a shell that changed since the last call is noticed inside the call", async () => {
  const folder = await mkdtemp(join(tmpdir(), "cookie-shell-"));
  const shell = join(folder, "bash");
  const script = (text: string) => writeFile(shell, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  await script('exec bash "$@"');
  const plugin = await startBash(bash.workspace, { config: { shell } });
  const run = () => plugin.call("bash", { command: "exit 7" }).result;
  expect((await run()).metadata).toMatchObject({ status: 7, shell });
  await script("exit 9 # another shell");
  await expect(run()).rejects.toMatchObject({ code: "operation_changed" });
  expect((await run()).metadata).toMatchObject({ status: 9 });
  await plugin.close();
  await rm(folder, { recursive: true });
});
