import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PluginLogFiles } from "../../../../kernel/src/plugin/plugin-log-files.ts";
import { silentLogger } from "../../../../kernel/src/support/logger.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "cookie-logs-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

test("[E-010] one file per plugin, one line per message, for the owner alone; every line goes on to the sink", async () => {
  const passed: string[] = [];
  const logs = new PluginLogFiles(root, { log: (_, message) => passed.push(message) });
  logs.log("info", "first", { plugin: "one" });
  logs.log("warn", "two\nlines", { plugin: "one", head: "x" });
  logs.log("error", "other", { plugin: "host core" });
  logs.log("info", "of the kernel itself");
  await logs.close();
  expect(await readdir(join(root, "logs"))).toEqual(["host-core.log", "one.log"]);
  const lines = (await readFile(join(root, "logs/one.log"), "utf8")).split("\n");
  expect(lines.map((line) => line.replace(/^\S+Z /, ""))).toEqual([
    "info first",
    'warn two lines {"head":"x"}',
    "",
  ]);
  expect(passed).toHaveLength(4);
  expect((await stat(join(root, "logs/one.log"))).mode & 0o777).toBe(0o600);
  expect((await stat(join(root, "logs"))).mode & 0o777).toBe(0o700);
});

test("[E-010] a file that has grown is put aside, and a flood is counted instead of kept", async () => {
  const logs = new PluginLogFiles(root, silentLogger);
  logs.log("info", "begin", { plugin: "one" });
  await logs.close();
  await writeFile(join(root, "logs/one.log"), "x".repeat(1024 * 1024 + 1));
  for (let line = 0; line < 1000; line += 1) logs.log("info", "y".repeat(1000), { plugin: "one" });
  logs.log("info", "last", { plugin: "one" });
  await logs.close();
  expect((await stat(join(root, "logs/one.log.1"))).size).toBe(1024 * 1024 + 1);
  const kept = await readFile(join(root, "logs/one.log"), "utf8");
  expect(kept.length).toBeLessThan(600 * 1024);
  expect(kept).toMatch(/warn \d+ more lines were not kept\n$/);
});

test.skipIf(process.platform === "win32")(
  "a pipe in the file's place costs nothing but the lines",
  async () => {
    await mkdir(join(root, "logs"));
    execFileSync("mkfifo", [join(root, "logs/one.log")]);
    const logs = new PluginLogFiles(root, silentLogger);
    logs.log("info", "lost", { plugin: "one" });
    await expect(logs.close()).resolves.toBeUndefined();
  },
);

test("a folder that cannot be made costs nothing but the lines", async () => {
  await writeFile(join(root, "logs"), "in the way");
  const logs = new PluginLogFiles(root, silentLogger);
  logs.log("info", "lost", { plugin: "one" });
  await expect(logs.close()).resolves.toBeUndefined();
});
