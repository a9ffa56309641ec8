import type * as files from "node:fs/promises";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { durableReplace } from "../../../../kernel/src/support/durable-replace.ts";
import { diskTrace } from "./traced-disk.ts";

vi.mock("node:fs/promises", async (original) => {
  const { traceDisk } = await import("./traced-disk.ts");
  return traceDisk(await original<typeof files>());
});

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cookie-replace-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test("[C-001] [C-003] the new bytes are there, in a file for the owner alone", async () => {
  const directory = await makeDirectory();
  const path = join(directory, "state.json");
  await durableReplace(path, Buffer.from("one"));
  await durableReplace(path, Buffer.from("two"));
  expect(await readFile(path, "utf8")).toBe("two");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(["state.json"]);
});

test("[C-001] a failure leaves the old file and no temporary", async () => {
  const directory = await makeDirectory();
  const path = join(directory, "taken");
  await mkdir(path);
  await writeFile(join(path, "inside"), "");
  await expect(durableReplace(path, Buffer.from("x"))).rejects.toThrow();
  expect(await readdir(directory)).toEqual(["taken"]);
});

test("[C-070] what changed in between stays, and no temporary", async () => {
  const directory = await makeDirectory();
  const path = join(directory, "config.toml");
  await writeFile(path, "theirs");
  const confirm = async () => {
    if ((await readFile(path, "utf8")) !== "mine") throw new Error("changed");
  };
  await expect(durableReplace(path, Buffer.from("new"), { confirm })).rejects.toThrow("changed");
  expect([await readFile(path, "utf8"), await readdir(directory)]).toEqual([
    "theirs",
    ["config.toml"],
  ]);
});

test("[C-001] the bytes are durable before the rename, the name after it", async () => {
  const directory = await makeDirectory();
  const path = join(directory, "state.json");
  diskTrace.length = 0;
  await durableReplace(path, Buffer.from("one"));
  expect(diskTrace).toEqual([
    expect.stringMatching(/^sync .*\.tmp$/),
    `rename ${path}`,
    `sync ${directory}`,
  ]);
});

test("[S-274] what a writer that died has left goes with the next one, and nothing else", async () => {
  const directory = await makeDirectory();
  const path = join(directory, "state.json");
  for (const name of ["state.json.77-0123456789ab.tmp", "state.json.mine.tmp", "other.1-0.tmp"]) {
    await writeFile(join(directory, name), "half");
  }
  await durableReplace(path, Buffer.from("one"));
  expect((await readdir(directory)).sort()).toEqual([
    "other.1-0.tmp",
    "state.json",
    "state.json.mine.tmp",
  ]);
});
