import { execFileSync } from "node:child_process";
import { mkdir, open, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { useFs } from "./fs-fixture.ts";

const fs = useFs({
  readArtifact: ({ uri, offset, limit }) => {
    if (uri === "artifact://nope") throw new CookieError("artifact_uri", "no artifact URI");
    return {
      text: `${uri} ${offset} ${limit}`,
      next_offset: null,
      next_byte: null,
      total_lines: 1,
      total_bytes: 10,
      source: "artifact.stdout",
    };
  },
});

const read = (args: Record<string, unknown>) => fs.plugin.run("read", args);

describe("a text file", () => {
  test("[T-055] [T-056] comes back between tags with one-based numbers", async () => {
    await fs.put("a.ts", "export const a = 1;\nexport const b = 2;\r\nexport const c = 3;\n");
    const path = join(fs.workspace, "a.ts");
    expect(await read({ filePath: "a.ts", offset: 1, limit: 2 })).toEqual({
      content: `<path>${path}</path>\n<type>file</type>\n<content>\n2: export const b = 2;\n3: export const c = 3;\n</content>`,
      title: `Read file ${path}`,
      metadata: {
        kind: "text",
        offset: 1,
        limit: 2,
        total_lines: 3,
        next_offset: null,
        next_byte: null,
      },
    });
  });

  test("[T-055] absent and null arguments mean offset 0, byte 0 and 2000 lines", async () => {
    await fs.put("long.txt", "x\n".repeat(2001));
    const result = await read({ filePath: "long.txt", offset: null, byte: null });
    expect(result.metadata).toEqual({
      kind: "text",
      offset: 0,
      limit: 2000,
      total_lines: 2001,
      next_offset: 2000,
      next_byte: 0,
    });
    const prepared = await fs.plugin.prepare("read", { filePath: "long.txt" });
    expect(prepared.arguments).toEqual({ filePath: "long.txt", offset: 0, byte: 0, limit: 2000 });
  });

  test.for([{ limit: 0 }, { offset: -1 }, { limit: 1.5 }, { limit: "5" }, { surplus: 1 }])(
    "[T-055] %j is refused",
    async (args) => {
      await fs.put("a.txt", "a\n");
      await expect(read({ filePath: "a.txt", ...args })).rejects.toMatchObject({
        code: "invalid_arguments",
      });
    },
  );

  test("[T-057] an offset past the end fails with the real line count", async () => {
    await fs.put("short.txt", "1\n2\n3\n");
    await expect(read({ filePath: "short.txt", offset: 5000 })).rejects.toMatchObject({
      code: "execution_failed",
      message: "offset 5000 is past the end: the file has 3 lines",
    });
    await expect(read({ filePath: "short.txt", offset: 3 })).rejects.toThrow(/has 3 lines/);
  });

  test("[T-057] an empty file succeeds and says so", async () => {
    await fs.put("empty.txt", "");
    const result = await read({ filePath: "empty.txt" });
    expect(result.content).toMatch(/<content>\n<\/content>\n\(empty file\)$/);
    expect(result.metadata).toMatchObject({ total_lines: 0, next_offset: null });
  });

  test("[B005] [T-057] a 60 KiB line comes back whole", async () => {
    const line = JSON.stringify({ data: "x".repeat(60 * 1024) });
    await fs.put("one-line.json", line);
    const { content, metadata } = await read({ filePath: "one-line.json" });
    expect(content).toContain(`1: ${line}\n`);
    expect(metadata).toMatchObject({ next_offset: null, next_byte: null });
  });

  test("[B004] [T-183] one line of a sparse 128 MiB file costs a few MiB of memory", async () => {
    const path = await fs.put("sparse.txt", "first line\n");
    const handle = await open(path, "r+");
    await handle.truncate(128 * 1024 * 1024);
    await handle.close();
    await read({ filePath: "sparse.txt", limit: 1 });
    const before = memoryOf(fs.plugin.pid);
    const result = await read({ filePath: "sparse.txt", limit: 1 });
    expect(result.content).toContain("<content>\n1: first line\n</content>");
    expect(memoryOf(fs.plugin.pid) - before).toBeLessThan(16 * 1024 * 1024);
    await expect(read({ filePath: "sparse.txt", offset: 9 })).rejects.toThrow(/has 2 lines/);
  });
});

describe("what is no text", () => {
  test.for([
    ["cafe.txt", Buffer.from("caf\xe9\n", "latin1"), "Latin-1"],
    ["wide.txt", Buffer.from("\ufeffhi\n", "utf16le"), "UTF-16LE"],
    ["logo.png", Buffer.from("89504e470d0a1a0a0000", "hex"), "PNG image"],
    ["paper.pdf", Buffer.from("%PDF-1.7\n"), "PDF document"],
    ["data.bin", Buffer.from([0xff, 0x00, 0x01, 0x02]), "binary"],
  ] as const)("[T-059] %s fails and is named as %s", async ([name, bytes, kind]) => {
    await fs.put(name, bytes);
    await expect(read({ filePath: name })).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringContaining(kind) as string,
    });
  });

  test("[B001] [T-051] a named pipe is refused by its type and nothing hangs", async () => {
    execFileSync("mkfifo", [join(fs.workspace, "pipe")]);
    await expect(read({ filePath: "pipe" })).rejects.toMatchObject({
      code: "unsupported_security",
      message: expect.stringMatching(/not a regular file: it is a named pipe/) as string,
    });
    await fs.plugin.ping();
  });

  test.for(["/dev/zero", "/dev/urandom", "endless"])(
    "[B002] [T-051] %s is refused before a byte is read",
    async (filePath) => {
      if (filePath === "endless") await symlink("/dev/zero", join(fs.workspace, filePath));
      await expect(read({ filePath })).rejects.toMatchObject({
        code: "unsupported_security",
        message: expect.stringContaining("character device") as string,
      });
    },
  );

  test("a missing file is execution_failed and names the path", async () => {
    await expect(read({ filePath: "none.txt" })).rejects.toMatchObject({
      code: "execution_failed",
      message: `${join(fs.workspace, "none.txt")} does not exist`,
    });
  });
});

describe("a folder", () => {
  test("[T-058] is listed by name bytes, folders with a slash, links as they are", async () => {
    const folder = join(fs.workspace, "folder");
    await mkdir(join(folder, "sub"), { recursive: true });
    for (const name of ["b", "a", "B", "é", ".hidden"]) await writeFile(join(folder, name), "");
    await symlink("sub", join(folder, "link"));
    await symlink("gone", join(folder, "dangling"));
    expect(await read({ filePath: "folder" })).toEqual({
      content: `<path>${folder}</path>\n<type>directory</type>\n<entries>\n.hidden\nB\na\nb\ndangling\nlink\nsub/\né\n</entries>`,
      title: `Read directory ${folder}`,
      metadata: { kind: "directory", shown: 8, total_entries: 8 },
    });
    const page = await read({ filePath: "folder", offset: 1, limit: 2 });
    expect(page.content).toContain("<entries>\nB\na\n</entries>");
    expect(page.metadata).toEqual({ kind: "directory", shown: 2, total_entries: 8 });
    await expect(read({ filePath: "folder", offset: 8 })).rejects.toThrow(/has 8 entries/);
  });

  test("[T-058] an empty one says so", async () => {
    await mkdir(join(fs.workspace, "void"));
    expect((await read({ filePath: "void" })).content).toMatch(/<\/entries>\n\(empty directory\)$/);
  });
});

describe("an artifact", () => {
  test("[T-060] goes to the kernel before anything is made of it as a path", async () => {
    const filePath = "artifact://../../etc/passwd";
    const prepared = await fs.plugin.prepare("read", { filePath, limit: 9000 });
    expect(prepared.resources).toEqual([
      { action: "read", label: filePath, lifetime: "restart_stable" },
    ]);
    expect(await fs.plugin.commit("read", {}, prepared)).toEqual({
      content: `${filePath} 0 2000`,
      title: "Artifact page",
      metadata: {
        filePath,
        offset: 0,
        limit: 2000,
        next_offset: null,
        next_byte: null,
        source: "artifact.stdout",
      },
    });
  });

  test("[T-060] the kernel's error is the tool's", async () => {
    await expect(read({ filePath: "artifact://nope" })).rejects.toMatchObject({
      code: "artifact_uri",
    });
  });
});

describe("names in another Unicode form", () => {
  test("[B007] [T-187] the one equal entry is used and the result says so", async () => {
    await fs.put("nai\u0308ve.txt", "found\n");
    const prepared = await fs.plugin.prepare("read", { filePath: "na\u00efve.txt" });
    expect(prepared.resources.map(({ label }) => label)).toEqual([
      "na\u00efve.txt",
      "nai\u0308ve.txt",
    ]);
    const { content } = await fs.plugin.commit("read", {}, prepared);
    expect(content).toContain("1: found\n");
    expect(content).toMatch(/\(used the existing name .*nai<U\+0308>ve\.txt\)$/);
  });

  test("[B007] [T-187] an exact name wins, and two other candidates are an error that lists both", async () => {
    await fs.put("\u1e69.txt", "exact\n");
    await fs.put("s\u0323\u0307.txt", "one\n");
    await fs.put("s\u0307\u0323.txt", "two\n");
    expect((await read({ filePath: "\u1e69.txt" })).content).toContain("1: exact\n");
    await mkdir(join(fs.workspace, "twins"));
    await fs.put("twins/s\u0323\u0307.txt", "one\n");
    await fs.put("twins/s\u0307\u0323.txt", "two\n");
    await expect(read({ filePath: "twins/\u1e69.txt" })).rejects.toMatchObject({
      code: "execution_failed",
      message: expect.stringMatching(/s<U\+0307><U\+0323>.*s<U\+0323><U\+0307>/) as string,
    });
  });
});

test("[T-053] a file that is cut while it is read is read whole or not at all", async () => {
  const lines = 4_000_000;
  const path = await fs.put("cut.txt", "line\n".repeat(lines));
  const prepared = await fs.plugin.prepare("read", { filePath: "cut.txt" });
  const reading = fs.plugin.commit("read", { filePath: "cut.txt" }, prepared).then(
    ({ metadata }) => metadata?.["total_lines"],
    ({ code }: CookieError) => code,
  );
  await fs.plugin.ping();
  await truncate(path, 10);
  expect([lines, "operation_changed"]).toContain(await reading);
});

test("the display argument is the workspace-relative path with the given page", async () => {
  await fs.put("shown.txt", "1\n2\n");
  const shown = async (args: Record<string, unknown>) =>
    (await fs.plugin.prepare("read", args)).primary_argument;
  expect(await shown({ filePath: "./shown.txt" })).toBe("shown.txt");
  expect(await shown({ filePath: "shown.txt", offset: 1, limit: 1 })).toBe(
    "shown.txt [offset=1, limit=1]",
  );
  expect(await shown({ filePath: "~" })).toBe("~");
  expect(await shown({ filePath: "/usr" })).toBe("/usr");
});

/** Resident bytes of a process. */
function memoryOf(pid: number): number {
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)])) * 1024;
}
