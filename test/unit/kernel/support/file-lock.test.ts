import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tryFileLock, withFileLock } from "../../../../kernel/src/support/file-lock.ts";

async function lockPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cookie-lock-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return join(directory, "a.lock");
}

test("[C-003] one holder at a time, in a file for the owner alone", async () => {
  const path = await lockPath();
  const first = await tryFileLock(path);
  expect(first).toBeDefined();
  expect(await tryFileLock(path)).toBeUndefined();
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  first?.release();
  first?.release();
  const second = await tryFileLock(path);
  expect(second).toBeDefined();
  second?.release();
});

test("[C-002] the death of its holder frees a lock, whose file stays and does not block", async () => {
  const path = await lockPath();
  const library = createRequire(import.meta.url).resolve("fs-native-extensions");
  const script = `const { tryLock } = require(${JSON.stringify(library)});
    console.log(tryLock(require("fs").openSync(${JSON.stringify(path)}, "a+")));
    setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void holder.kill("SIGKILL"));
  const output: unknown[] = await once(holder.stdout, "data");
  expect(String(output[0]).trim()).toBe("true");
  expect(await tryFileLock(path)).toBeUndefined();
  holder.kill("SIGKILL");
  await once(holder, "exit");
  expect(await withFileLock(path, async () => "mine")).toBe("mine");
});

test("work under one lock does not overlap, and a failure frees it", async () => {
  const path = await lockPath();
  let inside = 0;
  const work = async () => {
    inside += 1;
    expect(inside).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    inside -= 1;
  };
  await Promise.all([1, 2, 3].map(() => withFileLock(path, work)));
  await expect(withFileLock(path, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await expect(withFileLock(path, async () => "free")).resolves.toBe("free");
});
