import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, lstatSync } from "node:fs";
import { mkdir, readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { holdFolder } from "../../../../plugins/fs/src/held-folder.ts";
import { locateTarget } from "../../../../plugins/fs/src/locate-target.ts";
import { openTarget, sameFile } from "../../../../plugins/fs/src/target-identity.ts";
import { useFs } from "./fs-fixture.ts";

const fs = useFs();
const ROUNDS = 100;

/** Puts a link in the place of an object and the object back, as fast as it can, whatever a write did between. */
const SWAPPER = `
const { renameSync, rmSync } = require("node:fs");
const [subject, aside, link] = process.argv.slice(1);
const move = (from, to) => {
  try { renameSync(from, to); } catch { rmSync(to, { recursive: true, force: true }); renameSync(from, to); }
};
console.log("ready");
for (;;) { move(subject, aside); move(link, subject); move(subject, link); move(aside, subject); }
`;

/** A folder and a file in it, one of which is swapped against a link to its like outside. */
async function useSwaps(name: string, swapped: "file" | "folder"): Promise<string> {
  const inside = join(fs.workspace, name);
  const outside = join(fs.root, `outside-${name}`);
  for (const [folder, content] of [
    [inside, "inside\n"],
    [outside, "secret\n"],
  ] as const) {
    await mkdir(folder);
    await writeFile(join(folder, "f"), content);
  }
  await writeFile(join(outside, "secret"), "");
  const subject = swapped === "folder" ? inside : join(inside, "f");
  const link = join(fs.workspace, `${name}.link`);
  await symlink(swapped === "folder" ? outside : join(outside, "f"), link);
  const args = ["-e", SWAPPER, subject, join(fs.workspace, `${name}.aside`), link];
  const swapper = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(async () => {
    const exit = once(swapper, "exit");
    if (swapper.kill("SIGKILL")) await exit;
  });
  await once(swapper.stdout, "data");
  return outside;
}

/** What a call answers whose labels lie in the workspace; empty when it fails or has another label. */
async function answerInside(tool: string, args: Record<string, unknown>): Promise<string> {
  try {
    const prepared = await fs.plugin.prepare(tool, args);
    if (prepared.resources.every(({ label }) => label?.startsWith("/") === false)) {
      return (await fs.plugin.commit(tool, args, prepared)).content ?? "";
    }
    fs.plugin.discard(prepared.prepared === undefined ? [] : [prepared.prepared]);
    return "";
  } catch {
    return "";
  }
}

test.for([
  ["read", "folder", "f"],
  ["read", "file", "f"],
  ["read", "folder", ""],
  ["write", "folder", "f"],
  ["write", "file", "f"],
  ["write", "folder", "new"],
  ["edit", "folder", "f"],
  ["edit", "file", "f"],
] as const)(
  "[T-053] [T-062] %s under a %s that is swapped against a link reaches nothing outside: %j",
  async ([tool, swapped, leaf]) => {
    const name = `${tool}-${swapped}-${leaf}`;
    const outside = await useSwaps(name, swapped);
    const filePath = join(name, leaf);
    for (let round = 0; round < ROUNDS; round += 1) {
      const content = await answerInside(tool, {
        filePath,
        ...(tool === "write" && { content: `written ${round}\n` }),
        ...(tool === "edit" && {
          oldString: "e",
          newString: `e${round}`.slice(0, 1 + (round % 2)),
        }),
      });
      expect(content.replace(/<path>.*<\/path>/, "")).not.toContain("secret");
      expect(await readFile(join(outside, "f"), "utf8")).toBe("secret\n");
    }
    expect((await readdir(outside)).sort()).toEqual(["f", "secret"]);
  },
);

// Only procfs tells where an open file or folder is.
describe.skipIf(process.platform !== "linux")("a link that comes between two looks", () => {
  async function twoFolders(name: string) {
    const [inside, outside] = [join(fs.workspace, name), join(fs.root, `far-${name}`)];
    for (const folder of [inside, outside]) {
      await mkdir(folder);
      await writeFile(join(folder, "f"), folder);
    }
    const swap = async () => {
      await rename(inside, `${inside}.aside`);
      await symlink(outside, inside);
    };
    return { inside, outside, swap };
  }

  test("[T-053] a file is opened only where it was located", async () => {
    const { inside, outside, swap } = await twoFolders("opened");
    const located = locateTarget(join(inside, "f"));
    closeSync(openTarget(located, sameFile));
    await swap();
    const misled = { ...located, leaf: locateTarget(join(outside, "f")).leaf };

    expect(() => openTarget(misled, sameFile)).toThrow(/changed since this call was prepared/);
  });

  test("[T-062] what is created in a held folder never lands behind the link", async () => {
    const { inside, outside, swap } = await twoFolders("held");
    const stats = lstatSync(inside, { bigint: true });
    const folder = holdFolder(inside, stats);
    await swap();

    await writeFile(folder?.at("new") ?? "", "new");
    folder?.close();

    expect(await readdir(outside)).toEqual(["f"]);
    expect((await readdir(`${inside}.aside`)).sort()).toEqual(["f", "new"]);
    expect(holdFolder(inside, stats)).toBeUndefined();
    expect(holdFolder(join(inside, "."), lstatSync(outside, { bigint: true }))).toBeUndefined();
  });
});
