import { spawnSync } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PluginDirectories } from "../../../../kernel/src/plugin/plugin-directories.ts";
import { tempDirectory } from "./open-host.ts";

test("[E-048] data survives, scratch is empty at every start and gone after close", async () => {
  const root = await tempDirectory();
  const directories = new PluginDirectories(root);
  const first = await directories.open("sample", 1);
  await writeFile(join(first.data, "kept"), "");
  await writeFile(join(first.scratch, "lost"), "");
  const second = await directories.open("sample", 1);
  expect(await readdir(second.data)).toEqual(["kept"]);
  expect(await readdir(second.scratch)).toEqual([]);
  await directories.close();
  expect(await readdir(join(root, "run"))).toEqual([]);
});

test("what a killed kernel left behind is removed, what a living one has is not", async () => {
  const root = await tempDirectory();
  const { pid: dead } = spawnSync(process.execPath, ["-e", ""]);
  const names = [String(dead), String(process.ppid), "note"];
  for (const name of names) await mkdir(join(root, "run", name), { recursive: true });
  const directories = new PluginDirectories(root);
  await directories.open("sample", 1);
  await directories.close();
  expect((await readdir(join(root, "run"))).sort()).toEqual([String(process.ppid), "note"].sort());
});
