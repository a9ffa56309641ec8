import {
  chmod,
  link,
  mkdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { MAX_WEIGHT, WeightBudget } from "../../../../plugins/fs/src/weight-budget.ts";
import { useFs } from "./fs-fixture.ts";

const fs = useFs();

async function labelsOf(tool: string, filePath: string): Promise<(string | null)[]> {
  const args = tool === "read" ? { filePath } : { filePath, content: "x" };
  const { resources } = await fs.plugin.prepare(tool, args);
  return resources.map(({ label }) => label);
}

describe("labels", () => {
  test("[T-052] are relative inside the workspace, `.` for its root and absolute outside", async () => {
    await mkdir(join(fs.workspace, "src"));
    await fs.put("src/a.ts", "a\n");
    await writeFile(join(fs.root, "outside.txt"), "o\n");
    expect(await labelsOf("read", "src/../src/a.ts")).toEqual(["src/a.ts"]);
    expect(await labelsOf("read", ".")).toEqual(["."]);
    expect(await labelsOf("read", "../outside.txt")).toEqual([join(fs.root, "outside.txt")]);
    expect(await labelsOf("read", "~/outside.txt")).toEqual([join(fs.root, "outside.txt")]);
    expect((await fs.plugin.run("read", { filePath: "../outside.txt" })).content).toContain("1: o");
  });

  test("[B023] [T-051] a link out of the workspace is labelled by itself and by its target", async () => {
    const outside = join(fs.root, "private.md");
    await writeFile(outside, "secret\n");
    await symlink(outside, join(fs.workspace, "notes.md"));
    const prepared = await fs.plugin.prepare("write", { filePath: "notes.md", content: "new" });
    expect(prepared.resources).toEqual([
      { action: "write", label: "notes.md", lifetime: "process_local" },
      { action: "write", label: outside, lifetime: "process_local" },
    ]);
    fs.plugin.discard([prepared.prepared ?? ""]);
    expect(await readFile(outside, "utf8")).toBe("secret\n");
  });

  test("[B026] [T-051] a link inside the workspace works like a plain folder", async () => {
    await mkdir(join(fs.workspace, "data/memory"), { recursive: true });
    await symlink("data/memory", join(fs.workspace, "memory"));
    expect(await labelsOf("write", "memory/new/x.md")).toEqual([
      "memory/new/x.md",
      "data/memory/new/x.md",
    ]);
    await fs.plugin.run("write", { filePath: "memory/new/x.md", content: "kept\n" });
    expect(await readFile(join(fs.workspace, "data/memory/new/x.md"), "utf8")).toBe("kept\n");
  });
});

describe("links", () => {
  test.for([
    ["dangling", "dangling link"],
    ["cycle", "cycle of links"],
  ] as const)("[T-051] a %s link is execution_failed", async ([name, text]) => {
    await symlink("nowhere", join(fs.workspace, "dangling")).catch(() => undefined);
    await symlink("cycle", join(fs.workspace, "cycle")).catch(() => undefined);
    for (const tool of ["read", "write"]) {
      const args = tool === "read" ? {} : { content: "" };
      await expect(fs.plugin.prepare(tool, { filePath: name, ...args })).rejects.toMatchObject({
        code: "execution_failed",
        message: expect.stringContaining(text) as string,
      });
    }
  });

  test("[T-051] [T-053] a link that changes between preparation and call stops the call", async () => {
    await fs.put("one.txt", "one\n");
    await fs.put("two.txt", "two\n");
    const path = join(fs.workspace, "turn.txt");
    await symlink("one.txt", path);
    const prepared = await fs.plugin.prepare("read", { filePath: "turn.txt" });
    await rm(path);
    await symlink("two.txt", path);
    await expect(fs.plugin.commit("read", {}, prepared)).rejects.toMatchObject({
      code: "operation_changed",
    });
  });

  test("[T-051] a write through a link replaces the target and keeps the link", async () => {
    await fs.put("real.txt", "old\n");
    await symlink("real.txt", join(fs.workspace, "alias.txt"));
    await fs.plugin.run("write", { filePath: "alias.txt", content: "new\n" });
    expect(await readFile(join(fs.workspace, "real.txt"), "utf8")).toBe("new\n");
    expect(await labelsOf("read", "alias.txt")).toEqual(["alias.txt", "real.txt"]);
  });
});

describe("identity", () => {
  test("[T-053] [E-091] a read notices other content, a later mtime and another file", async () => {
    const changes: ((path: string) => Promise<void>)[] = [
      (path) => writeFile(path, "other\n"),
      (path) => utimes(path, new Date(), new Date(1e12)),
      async (path) => {
        await writeFile(`${path}.new`, "text\n");
        await rename(`${path}.new`, path);
      },
      (path) => rm(path),
    ];
    for (const change of changes) {
      const path = await fs.put("watched.txt", "text\n");
      const prepared = await fs.plugin.prepare("read", { filePath: "watched.txt" });
      await change(path);
      await expect(fs.plugin.commit("read", {}, prepared)).rejects.toMatchObject({
        code: "operation_changed",
      });
    }
  });

  test("[T-053] a replaced parent folder is noticed", async () => {
    await mkdir(join(fs.workspace, "parent"));
    await fs.put("parent/f.txt", "same\n");
    const args = { filePath: "parent/f.txt", content: "new" };
    const prepared = await fs.plugin.prepare("write", args);
    await rename(join(fs.workspace, "parent"), join(fs.workspace, "moved"));
    await mkdir(join(fs.workspace, "parent"));
    await link(join(fs.workspace, "moved/f.txt"), join(fs.workspace, "parent/f.txt"));
    await expect(fs.plugin.commit("write", args, prepared)).rejects.toMatchObject({
      code: "operation_changed",
    });
    expect(await readFile(join(fs.workspace, "parent/f.txt"), "utf8")).toBe("same\n");
  });

  test("[B022] [T-053] a later mtime with equal content is no change for an edit and a write", async () => {
    const path = await fs.put("touched.txt", "one two\n");
    const edit = { filePath: "touched.txt", oldString: "one", newString: "1" };
    const prepared = await fs.plugin.prepare("edit", edit);
    await utimes(path, new Date(), new Date(1e12));
    await fs.plugin.commit("edit", edit, prepared);
    await fs.plugin.run("edit", { filePath: "touched.txt", oldString: "two", newString: "2" });
    expect(await readFile(path, "utf8")).toBe("1 2\n");
  });

  test("[T-053] changed permission bits are a change for a write", async () => {
    const path = await fs.put("mode.txt", "x\n");
    const args = { filePath: "mode.txt", content: "y\n" };
    const prepared = await fs.plugin.prepare("write", args);
    await chmod(path, 0o600);
    await expect(fs.plugin.commit("write", args, prepared)).rejects.toMatchObject({
      code: "operation_changed",
    });
  });

  test("[T-014] a token is good for one call", async () => {
    await fs.put("once.txt", "x\n");
    const prepared = await fs.plugin.prepare("read", { filePath: "once.txt" });
    await fs.plugin.commit("read", {}, prepared);
    await expect(fs.plugin.commit("read", {}, prepared)).rejects.toMatchObject({
      code: "prepared_capability_lost",
    });
  });
});

describe("serialization keys", () => {
  const keysOf = async (filePath: string) =>
    (await fs.plugin.prepare("write", { filePath, content: "" })).serialize;

  test("[T-027] two hard links share the key of their file, also through a link", async () => {
    const path = await fs.put("first.txt", "x");
    await link(path, join(fs.workspace, "second.txt"));
    await symlink("second.txt", join(fs.workspace, "third.txt"));
    const keys = await keysOf("first.txt");
    expect(keys).toEqual([expect.stringMatching(/^file:\d+:\d+$/)]);
    expect(await keysOf("second.txt")).toEqual(keys);
    expect(await keysOf("third.txt")).toEqual(keys);
    const edit = { filePath: "first.txt", oldString: "x", newString: "y" };
    expect((await fs.plugin.prepare("edit", edit)).serialize).toEqual(keys);
  });

  test("[T-028] an absent path is keyed by its nearest folder and every missing name", async () => {
    const [key] = (await keysOf("new/deep/x.txt")) ?? [];
    expect(key).toMatch(/^path:\d+:\d+\/new\/deep\/x\.txt$/);
    expect(await keysOf("./new//deep/x.txt")).toEqual([key]);
    expect(await keysOf("new/other/x.txt")).not.toEqual([key]);
    const [long = ""] = (await keysOf(`${"long/".repeat(200)}x.txt`)) ?? [];
    expect(Buffer.byteLength(long)).toBeLessThanOrEqual(512);
  });
});

describe("weight", () => {
  const filePath = `${"d/".repeat(60)}x.txt`;

  beforeAll(async () => {
    await mkdir(join(fs.workspace, dirname(filePath)), { recursive: true });
    await fs.put(filePath, "x\n");
  });

  test("[T-017] what a budget reserved is given back once", () => {
    const budget = new WeightBudget();
    const release = budget.reserve("/a/b/c");
    expect(budget.used).toBe(7);
    release();
    release();
    expect(budget.used).toBe(0);
  });

  test("[T-017] live preparations are bounded, and use and discard make room again", async () => {
    const prepare = () => fs.plugin.prepare("read", { filePath });
    const tokens: Awaited<ReturnType<typeof prepare>>[] = [];
    let error: unknown;
    while (error === undefined && tokens.length < MAX_WEIGHT / 60) {
      await prepare().then(
        (prepared) => tokens.push(prepared),
        (reason: unknown) => {
          error = reason;
        },
      );
    }
    expect(error).toMatchObject({ code: "resource_limit" });
    const [used, discarded, ...rest] = tokens;
    if (used === undefined || discarded === undefined) throw new Error("nothing was prepared");
    await fs.plugin.commit("read", {}, used);
    tokens.push(await prepare());
    await expect(prepare()).rejects.toMatchObject({ code: "resource_limit" });
    fs.plugin.discard([discarded.prepared ?? ""]);
    rest.push(await prepare());
    await expect(
      fs.plugin.prepare("edit", { filePath, oldString: "none", newString: "" }),
    ).rejects.toMatchObject({ code: "resource_limit" });
    fs.plugin.discard([...tokens, ...rest].map(({ prepared }) => prepared ?? ""));
    await prepare();
  });

  test("[T-017] a preparation that fails reserves nothing", async () => {
    for (let round = 0; round < MAX_WEIGHT / 60; round += 1) {
      const edit = { filePath, oldString: "none", newString: "" };
      await fs.plugin.prepare("edit", edit).catch(() => undefined);
    }
    await fs.plugin.prepare("read", { filePath });
  });
});
