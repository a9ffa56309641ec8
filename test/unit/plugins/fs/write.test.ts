import {
  chmod,
  mkdir,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useFs } from "./fs-fixture.ts";

const fs = useFs();
const BOM = "\ufeff";

const write = (filePath: string, content: string) => fs.plugin.run("write", { filePath, content });
const contentOf = (name: string) => readFile(join(fs.workspace, name), "utf8");
const modeOf = async (name: string) => (await stat(join(fs.workspace, name))).mode & 0o7777;

/** No test leaves anything but what it asked for. */
async function expectNoStages(): Promise<void> {
  const names = await readdir(fs.workspace, { recursive: true });
  expect(names.filter((name) => name.includes(".cookie-agent-stage"))).toEqual([]);
}

describe("a new file", () => {
  test("[T-061] [T-064] is created with its missing parents under ordinary umask modes", async () => {
    const umask = process.umask();
    const path = join(fs.workspace, "notes/deep/todo.md");
    expect(await write("notes/deep/todo.md", "- ship\n")).toEqual({
      content: `Wrote 7 bytes to ${path}`,
      title: `Wrote ${path}`,
      metadata: { bytes: 7, cleanup_warning: null },
    });
    expect(await contentOf("notes/deep/todo.md")).toBe("- ship\n");
    expect(await modeOf("notes/deep/todo.md")).toBe(0o666 & ~umask);
    expect(await modeOf("notes/deep")).toBe(0o777 & ~umask);
    await write("notes/second.md", "");
    expect(await modeOf("notes/second.md")).toBe(0o666 & ~umask);
    await expectNoStages();
  });

  test("[T-064] bytes are counted as UTF-8, and new lines are written as given", async () => {
    const result = await write("text.txt", "é\r\n😀\n");
    expect(result.metadata).toMatchObject({ bytes: 9 });
    expect(await contentOf("text.txt")).toBe("é\r\n😀\n");
  });

  test("[T-061] nothing is created by preparing", async () => {
    await fs.plugin.prepare("write", { filePath: "only/prepared.txt", content: "x" });
    await expect(stat(join(fs.workspace, "only"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test.for(["race.txt", "race/deep.txt"])(
    "[T-028] [T-062] of two writes to the absent %s the second is operation_changed",
    async (filePath) => {
      const args = { filePath, content: "mine\n" };
      const first = await fs.plugin.prepare("write", args);
      const second = await fs.plugin.prepare("write", { ...args, content: "theirs\n" });
      expect(second.serialize).toEqual(first.serialize);
      await fs.plugin.commit("write", args, first);
      await expect(
        fs.plugin.commit("write", { ...args, content: "theirs\n" }, second),
      ).rejects.toMatchObject({ code: "operation_changed" });
      expect(await contentOf(filePath)).toBe("mine\n");
      await expectNoStages();
    },
  );

  test("a part of the path that is a file is execution_failed", async () => {
    await fs.put("plain.txt", "x");
    await expect(write("plain.txt/below", "x")).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringContaining("is not a folder") as string,
    });
  });
});

describe("an existing file", () => {
  test("[T-061] keeps its permission bits", async () => {
    const path = await fs.put("run.sh", "old\n");
    await chmod(path, 0o750);
    await write("run.sh", "new\n");
    expect(await modeOf("run.sh")).toBe(0o750);
    expect(await contentOf("run.sh")).toBe("new\n");
    await expectNoStages();
  });

  test("[B016] [T-185] keeps its byte order mark, which is not doubled", async () => {
    await fs.put("marked.txt", `${BOM}old\n`);
    await write("marked.txt", "café\n");
    expect(await contentOf("marked.txt")).toBe(`${BOM}café\n`);
    await write("marked.txt", `${BOM}again\n`);
    expect(await contentOf("marked.txt")).toBe(`${BOM}again\n`);
    await fs.put("plain2.txt", "old\n");
    await write("plain2.txt", "new\n");
    expect(await contentOf("plain2.txt")).toBe("new\n");
  });

  test.for([
    ["UTF-16LE", Buffer.from("\ufeffhi\n", "utf16le")],
    ["Latin-1", Buffer.from("caf\xe9\n", "latin1")],
    ["binary", Buffer.from([0xff, 0, 1, 2, 3])],
  ] as const)("[B016] a file in %s is refused and stays as it is", async ([name, bytes]) => {
    const path = await fs.put("foreign.txt", bytes);
    await expect(write("foreign.txt", "text\n")).rejects.toMatchObject({
      code: "execution_failed",
      data: { reason: "encoding" },
      message: expect.stringContaining(name) as string,
    });
    expect(await readFile(path)).toEqual(bytes);
  });

  test.for([
    ["rewritten", (path: string) => writeFile(path, "theirs!\n")],
    ["rewritten at equal size", (path: string) => writeFile(path, "new\n")],
    [
      "replaced",
      async (path: string) => {
        await writeFile(`${path}.x`, "old\n");
        await rename(`${path}.x`, path);
      },
    ],
  ] as const)(
    "[T-062] [E-091] one that was %s meanwhile is operation_changed and keeps its bytes",
    async ([, change]) => {
      const path = await fs.put("raced.txt", "old\n");
      const args = { filePath: "raced.txt", content: "mine\n" };
      const prepared = await fs.plugin.prepare("write", args);
      await change(path);
      const bytes = await readFile(path);
      await expect(fs.plugin.commit("write", args, prepared)).rejects.toMatchObject({
        code: "operation_changed",
      });
      expect(await readFile(path)).toEqual(bytes);
      await expectNoStages();
    },
  );

  test("[T-062] a reader sees the old or the new content, never a part", async () => {
    const sizes = [1 << 20, 3 << 20];
    await fs.put("atomic.txt", "a".repeat(sizes[0] ?? 0));
    let writing = true;
    const seen = new Set<string>();
    const watch = async () => {
      while (writing) {
        const text = await contentOf("atomic.txt");
        seen.add(`${text.length} ${text[0]} ${text.at(-1)}`);
      }
    };
    const watcher = watch();
    await write("atomic.txt", "b".repeat(sizes[1] ?? 0));
    writing = false;
    await watcher;
    const allowed = [`${sizes[0]} a a`, `${sizes[1]} b b`];
    expect([...seen].filter((state) => !allowed.includes(state))).toEqual([]);
  });
});

test("[T-063] a directory is refused", async () => {
  await mkdir(join(fs.workspace, "folder"));
  await expect(write("folder", "x")).rejects.toMatchObject({ code: "unsupported_security" });
  await symlink("folder", join(fs.workspace, "to-folder"));
  await expect(write("to-folder", "x")).rejects.toMatchObject({ code: "unsupported_security" });
  await expectNoStages();
});

test.for([
  ["content", { filePath: "x.txt", content: "\ud83d" }],
  ["filePath", { filePath: "artifact://abc", content: "x" }],
] as const)(
  "an argument that cannot be written is refused and %s is named",
  async ([field, args]) => {
    await expect(fs.plugin.prepare("write", args)).rejects.toMatchObject({
      code: "invalid_arguments",
      data: { field },
    });
  },
);

// Root may open every folder.
test.skipIf(process.getuid?.() === 0)(
  "[T-064] a folder that cannot be synced after publication is a warning, not a failure",
  async () => {
    const folder = join(fs.workspace, "unreadable");
    await mkdir(folder);
    await chmod(folder, 0o300);
    const { metadata } = await write("unreadable/x.txt", "x\n");
    await chmod(folder, 0o700);
    expect(metadata).toEqual({
      bytes: 2,
      cleanup_warning: expect.stringContaining(folder) as string,
    });
    expect(await contentOf("unreadable/x.txt")).toBe("x\n");
  },
);

test("[T-063] a cancelled write leaves the old content and no stage file", async () => {
  await fs.put("cancel.txt", "old\n");
  const args = { filePath: "cancel.txt", content: "x".repeat(2_000_000) };
  const prepared = await fs.plugin.prepare("write", args);
  const call = fs.plugin.call("write", args, { prepared: prepared.prepared ?? null });
  call.cancel();
  const outcome = await call.result.then(
    () => "done",
    (error: { code: string }) => error.code,
  );
  expect(outcome).toBe("cancelled");
  expect(await contentOf("cancel.txt")).toBe("old\n");
  await expectNoStages();
});
