import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { isAlive } from "../../../support/is-alive.ts";
import type { DrivenCall } from "../../../support/plugin-driver.ts";
import { startBash, useBash } from "./bash-fixture.ts";

const bash = useBash();

/** Every process a test leaves alive on purpose; ended after the tests. */
const kept: number[] = [];
afterAll(() => {
  for (const pid of kept.filter(isAlive)) process.kill(pid, "SIGKILL");
});

const pidIn = (text: string) => Number(/pid=(\d+)/.exec(text)?.[1]);

async function gone(pid: number): Promise<void> {
  expect(pid).toBeGreaterThan(0);
  while (isAlive(pid)) await delay(10);
}

/** Leaves a process of its own session behind and goes on once it is on its own. */
const leaveBehind = (seconds: number) =>
  `rm -f left; setsid bash -c ': > left; exec sleep ${seconds}' & until [ -e left ]; do sleep 0.02; done; echo ok`;

/** Runs a command into its timeout; the machine decides how long it takes to come as far as making the file `far`. */
async function runIntoTimeout(command: string): Promise<DrivenCall> {
  const far = join(bash.workspace, "far");
  for (let timeout = 300; ; timeout *= 2) {
    await rm(far, { force: true });
    const call = bash.start(command, { timeout });
    await expect(call.result).rejects.toMatchObject({
      code: "timeout",
      message: expect.stringContaining(`${timeout} ms`),
    });
    if (existsSync(far)) return call;
  }
}

describe("the shell's exit", () => {
  test("[B047] [T-072] ends children still in the group and says how many", async () => {
    const { result, stdout } = await bash.run(
      "(while :; do echo tick; : > ticked; sleep 0.1; done) & echo pid=$!; until [ -e ticked ]; do sleep 0.02; done; echo done",
    );
    expect(stdout).toMatch(/tick[\s\S]*done\n/);
    expect(result.metadata).toMatchObject({
      status: 0,
      note: expect.stringMatching(/^\d+ process(?:es)? still running/) as string,
    });
    await gone(pidIn(stdout));
  });

  test("[B049] [T-189] leaves alone what left the group, names it and does not wait for it", async () => {
    const { result, stdout } = await bash.run(leaveBehind(300));
    const pid = Number(/pid (\d+)/.exec(String(result.metadata?.["note"]))?.[1]);
    kept.push(pid);
    expect(stdout).toBe("ok\n");
    expect(result.metadata).toMatchObject({ status: 0 });
    await expect
      .poll(() => readFileSync(`/proc/${pid}/cmdline`, "latin1"))
      .toBe("sleep\u0000300\u0000");
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
    const call = await runIntoTimeout("seq 1 100; : > far; (sleep 600; :) ");
    expect(call.output("stdout").trim().split("\n")).toHaveLength(100);
  });

  test("[B050] [T-071] reaches descendants that ignore SIGTERM", async () => {
    const call = await runIntoTimeout(
      `bash -c 'trap "" TERM; echo pid=$$; : > far; sleep 600 & sleep 600'`,
    );
    await gone(pidIn(call.output("stdout")));
  });

  test("[B049] [T-071] [T-189] ends marked processes outside the group", async () => {
    const call = await runIntoTimeout(
      `setsid bash -c 'trap "" TERM; echo pid=$$; : > far; while :; do sleep 1; done' & sleep 600`,
    );
    await gone(pidIn(call.output("stdout")));
  });
});

test("[B049] [T-071] [T-189] a cancel ends group and marked processes and answers cancelled", async () => {
  const call = bash.start("(setsid sleep 600 & echo pid=$!); echo pid2; sleep 600");
  await call.printed("pid2");
  const pid = pidIn(call.output("stdout"));
  call.cancel();
  await expect(call.result).rejects.toMatchObject({ code: "cancelled" });
  await gone(pid);
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
      const earlier = plugin.call("bash", { command: leaveBehind(301) });
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
  await killed.close();
  const next = await startBash(bash.workspace);
  await gone(shell);
  await next.close();
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
