import { createHash } from "node:crypto";
import { chmod, mkdir, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useFs } from "./fs-fixture.ts";

const fs = useFs();

const edit = (filePath: string, oldString: string, newString: string) =>
  fs.plugin.run("edit", { filePath, oldString, newString });
const prepare = (filePath: string, oldString: string, newString: string) =>
  fs.plugin.prepare("edit", { filePath, oldString, newString });
const contentOf = (name: string) => readFile(join(fs.workspace, name), "utf8");

test("[T-065] an edit replaces the match under action write and tells the new digest", async () => {
  const path = await fs.put("a.ts", "export const b = 2;\n");
  const prepared = await prepare("a.ts", "= 2", "= 20");
  expect(prepared).toMatchObject({
    resources: [{ action: "write", label: "a.ts", lifetime: "process_local" }],
    detail: "-= 2\n+= 20\n",
    primary_argument: "a.ts",
  });
  const args = { filePath: "a.ts", oldString: "= 2", newString: "= 20" };
  const expected = "export const b = 20;\n";
  expect(await fs.plugin.commit("edit", args, prepared)).toEqual({
    content: `Edited ${path} (1 replacement).`,
    title: `Edited ${path}`,
    metadata: {
      new_sha256: createHash("sha256").update(expected).digest("hex"),
      cleanup_warning: null,
    },
  });
  expect(await contentOf("a.ts")).toBe(expected);
  expect((await readdir(fs.workspace)).filter((name) => name.startsWith(".cookie"))).toEqual([]);
});

describe("bytes outside the match", () => {
  test("[B008] [T-184] a mixed file matches what read shows and keeps its other endings", async () => {
    await fs.put("mixed.txt", "one\ntwo\r\nthree\n");
    await edit("mixed.txt", "one\ntwo", "uno\ndos");
    expect(await contentOf("mixed.txt")).toBe("uno\ndos\r\nthree\n");
  });

  test("[B010] [B011] [T-186] dollar sequences and code spans land literally", async () => {
    const file = "head\nsay(1)\ntail";
    await fs.put("dollar.md", file);
    const newString = 'say("$& $1 $$ $\' end") `$`';
    await edit("dollar.md", "say(1)", newString);
    const after = await contentOf("dollar.md");
    expect(after).toBe(`head\n${newString}\ntail`);
    expect(after.length - file.length).toBe(newString.length - "say(1)".length);
  });

  test("[B013] [T-185] a byte order mark stays", async () => {
    await fs.put("bom.txt", "\ufeffhello world\n漢字\n");
    await edit("bom.txt", "hello", "good bye");
    expect(await contentOf("bom.txt")).toBe("\ufeffgood bye world\n漢字\n");
  });

  test("[B014] no byte order mark appears and the CRLF count is unchanged", async () => {
    await fs.put("crlf.txt", "alpha\r\nbeta\r\n");
    await edit("crlf.txt", "beta", "gamma");
    expect(await contentOf("crlf.txt")).toBe("alpha\r\ngamma\r\n");
  });

  test("[B020] [T-184] new text that ends in LF gives exactly the asked lines in a CRLF file", async () => {
    await fs.put("lines.txt", "a\r\nb\r\n");
    await edit("lines.txt", "a\n", "a\nnew\n");
    expect(await contentOf("lines.txt")).toBe("a\r\nnew\r\nb\r\n");
  });

  test("[T-065] [T-185] the mode and a missing final newline are kept", async () => {
    const path = await fs.put("tool.sh", "#!/bin/sh\necho hi");
    await chmod(path, 0o754);
    await edit("tool.sh", "hi", "ho");
    expect(await contentOf("tool.sh")).toBe("#!/bin/sh\necho ho");
    expect((await stat(path)).mode & 0o777).toBe(0o754);
  });
});

describe("another encoding", () => {
  test.for([
    ["B017", "Latin-1", Buffer.from("n = 1\n# na\xefve\n", "latin1"), "n = 1", "n = 2"],
    [
      "B019",
      "Shift_JIS",
      Buffer.from("93fa967b8cea82cc83658358836782c582b70a656e640a", "hex"),
      "end",
      "日本語",
    ],
  ] as const)(
    "[B017] [B019] [T-059] [T-185] case %s: %s is named and the file is not touched",
    async ([, name, bytes, oldString, newString]) => {
      const path = await fs.put("foreign.txt", bytes);
      await expect(prepare("foreign.txt", oldString, newString)).rejects.toMatchObject({
        code: "execution_failed",
        data: { reason: "encoding" },
        message: expect.stringContaining(name) as string,
      });
      expect(await readFile(path)).toEqual(bytes);
    },
  );
});

describe("own writes and repeats", () => {
  test("[B022] an edit follows an edit without a new read", async () => {
    await fs.put("twice.txt", "one two\n");
    await fs.plugin.run("read", { filePath: "twice.txt" });
    await edit("twice.txt", "one", "1");
    await edit("twice.txt", "two", "2");
    expect(await contentOf("twice.txt")).toBe("1 2\n");
  });

  test("[B028] [T-066] several matches fail in preparation with count and lines", async () => {
    await fs.put("many.txt", "x = 1\ny\nx = 1\n");
    await expect(prepare("many.txt", "x = 1", "x = 2")).rejects.toMatchObject({
      code: "execution_failed",
      data: { reason: "ambiguous", count: 2, lines: [1, 3] },
      message: expect.stringMatching(/2 times .* lines 1, 3/) as string,
    });
    expect(await contentOf("many.txt")).toBe("x = 1\ny\nx = 1\n");
  });

  test("[B028] [T-066] a repeated edit is not found and doubles nothing", async () => {
    await fs.put("once.txt", "start\nend\n");
    await edit("once.txt", "start\n", "begin\nblock\n");
    await expect(prepare("once.txt", "start\n", "begin\nblock\n")).rejects.toMatchObject({
      code: "execution_failed",
      data: { reason: "no_match" },
    });
    expect(await contentOf("once.txt")).toBe("begin\nblock\nend\n");
  });
});

describe("creation and no-ops", () => {
  test("[B029] [T-067] an empty oldString creates a missing file with its parents", async () => {
    const path = join(fs.workspace, "made/here/new.txt");
    const result = await edit("made/here/new.txt", "", "a\r\nb\n");
    expect(result.content).toBe(`Created ${path}.`);
    expect(await contentOf("made/here/new.txt")).toBe("a\r\nb\n");
  });

  test.for([
    ["an existing file", "exists.txt", "", "x", "execution_failed", "file_exists"],
    ["an empty existing file", "empty.txt", "", "x", "execution_failed", "file_exists"],
    ["a missing file", "missing.txt", "x", "y", "execution_failed", "file_missing"],
    ["equal texts", "exists.txt", "x", "x", "invalid_arguments", "no_change"],
    [
      "texts equal but for endings",
      "exists.txt",
      "x\ny",
      "x\r\ny",
      "invalid_arguments",
      "no_change",
    ],
  ] as const)(
    "[B029] [T-067] [T-186] %s: every error has its own reason",
    async ([, name, oldString, newString, code, reason]) => {
      await fs.put("exists.txt", "x\ny\n");
      await fs.put("empty.txt", "");
      await expect(prepare(name, oldString, newString)).rejects.toMatchObject({
        code,
        data: { reason },
      });
    },
  );

  test("[T-067] replaceAll is an unknown field", async () => {
    await fs.put("all.txt", "a a\n");
    const args = { filePath: "all.txt", oldString: "a", newString: "b", replaceAll: true };
    await expect(fs.plugin.prepare("edit", args)).rejects.toMatchObject({
      code: "invalid_arguments",
    });
  });
});

test("[T-053] [T-062] content that changed since preparation is operation_changed", async () => {
  const path = await fs.put("raced.txt", "one\n");
  const prepared = await prepare("raced.txt", "one", "two");
  await writeFile(path, "uno\n");
  const args = { filePath: "raced.txt", oldString: "one", newString: "two" };
  await expect(fs.plugin.commit("edit", args, prepared)).rejects.toMatchObject({
    code: "operation_changed",
  });
  expect(await contentOf("raced.txt")).toBe("uno\n");
});

test("a directory is refused, and so is a file over 256 MiB", async () => {
  await mkdir(join(fs.workspace, "folder"));
  await expect(prepare("folder", "a", "b")).rejects.toMatchObject({
    code: "unsupported_security",
  });
  const path = await fs.put("huge.txt", "a");
  await truncate(path, 256 * 1024 * 1024 + 1);
  await expect(prepare("huge.txt", "a", "b")).rejects.toMatchObject({ code: "resource_limit" });
});
