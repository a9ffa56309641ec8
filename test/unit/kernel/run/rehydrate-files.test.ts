import { mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Policy } from "../../../../kernel/src/permission/compile-rules.ts";
import { openedPaths, rehydrateFiles } from "../../../../kernel/src/run/rehydrate-files.ts";
import { createTempProject } from "../../../support/temp-project.ts";

const rule = (resource: string, effect: "allow" | "ask" | "deny") => ({
  action: "read" as const,
  resource,
  effect,
});

async function openPlace(...rules: ReturnType<typeof rule>[]) {
  const project = await createTempProject();
  onTestFinished(() => project.remove());
  const policy: Policy = {
    documentRules: [rule("*", "allow"), ...rules],
    overlayRules: [],
    workspaceRoot: project.cwd,
  };
  const place = { cwd: project.cwd, workspaceRoot: project.cwd, policy };
  const rehydrate = (opened: string[], options: { visible?: string[]; room?: number } = {}) =>
    rehydrateFiles(opened, options.visible ?? [], place, options.room ?? 1_000_000);
  return { project, rehydrate };
}

const pathsOf = (files: readonly { path: string }[]) => files.map(({ path }) => path);

describe("files that come back", () => {
  test("[S-222] are the five that were opened last, oldest opening first, each once", async () => {
    const { project, rehydrate } = await openPlace();
    for (const name of "abcdefg") await project.write(name, `of ${name}`);
    const files = await rehydrate([..."abcdefgc", "./d", "missing"]);
    expect(pathsOf(files)).toEqual(["e", "f", "g", "c", "d"]);
    expect(files[0]).toMatchObject({ path: "e", content: "of e", byte_length: 4 });
  });

  test("[S-222] have at most 32 KiB each and 128 KiB together, cut between characters", async () => {
    const { project, rehydrate } = await openPlace();
    for (const name of "abcde") await project.write(name, `x${"ü".repeat(40_000)}`);
    const files = await rehydrate([..."abcde"]);
    expect(pathsOf(files)).toEqual(["b", "c", "d", "e"]);
    for (const { content, byte_length: byteLength } of files) {
      expect(Buffer.byteLength(content)).toBe(32 * 1024 - 1);
      expect(content).not.toContain("\uFFFD");
      expect(byteLength).toBe(80_001);
    }
  });

  test("[S-222] take no more room than there is", async () => {
    const { project, rehydrate } = await openPlace();
    await project.write("a", "a".repeat(5000));
    await project.write("b", "b".repeat(700));
    const files = await rehydrate(["a", "b"], { room: 1000 });
    expect(files.map(({ path, content }) => [path, content.length])).toEqual([
      ["a", 300],
      ["b", 700],
    ]);
    expect(await rehydrate(["a", "b"], { room: 0 })).toEqual([]);
  });

  test("[S-222] are those that the rules allow without asking now", async () => {
    const { project, rehydrate } = await openPlace(rule("asked", "ask"), rule("denied", "deny"));
    for (const name of ["asked", "denied", "free", ".env"]) await project.write(name, name);
    expect(pathsOf(await rehydrate(["asked", "denied", ".env", "free"]))).toEqual(["free"]);
  });

  test("[S-222] [B025] are judged by where links lead, too", async () => {
    const { project, rehydrate } = await openPlace(rule("/*", "deny"), rule("secret/*", "deny"));
    const outside = join(project.home, "outside");
    await mkdir(outside);
    await project.write("secret/key", "hidden");
    await symlink(join(project.cwd, "secret"), join(project.cwd, "open"));
    await symlink(outside, join(project.cwd, "away"));
    await project.write("away/file", "far");
    await symlink(join(project.cwd, "loop"), join(project.cwd, "loop"));
    expect(await rehydrate(["open/key", "away/file", "loop", "../../etc/passwd"])).toEqual([]);
  });

  test("[S-222] are text, and files", async () => {
    const { project, rehydrate } = await openPlace();
    await project.write("nul", "a\0b");
    await project.write("latin", Buffer.from([0x61, 0xe9, 0x62]));
    await project.write("gone", "x");
    await rm(join(project.cwd, "gone"));
    await mkdir(join(project.cwd, "folder"));
    expect(await rehydrate(["nul", "latin", "gone", "folder", "~nobody/x", ""])).toEqual([]);
  });

  test("[S-222] do not repeat what the kept messages show, whatever it is called there", async () => {
    const { project, rehydrate } = await openPlace();
    await project.write("a", "of a");
    await project.write("b", "of b");
    const visible = [join(project.cwd, "b")];
    expect(pathsOf(await rehydrate(["a", "b"], { visible }))).toEqual(["a"]);
  });
});

test("[S-222] what a call opened is told by its tool's declaration: an artifact, a failed call or a write is none", () => {
  const tool = (actions: string[]) => ({
    tool: { prepare: { mode: "dynamic", actions }, displayArgument: "where" },
  });
  const tools = new Map<string, unknown>([
    ["look", tool(["read"])],
    ["put", tool(["write"])],
    ["both", tool(["read", "write"])],
    [
      "fixed",
      {
        tool: {
          prepare: { mode: "static", resources: [{ action: "read", as: "path", arg: "at" }] },
        },
      },
    ],
  ]);
  const call = (id: string, name: string, input: object) => ({
    type: "tool_call",
    id,
    name,
    input,
  });
  const content = [
    call("1", "look", { where: "a" }),
    call("2", "put", { where: "b" }),
    call("3", "both", { where: "c" }),
    call("4", "fixed", { at: "d" }),
    call("5", "look", { where: "failed" }),
    call("6", "look", { where: "artifact://x" }),
    call("7", "gone", { where: "e" }),
    call("8", "look", { where: 7 }),
  ];
  const results = content.map(({ id }) => ({ callId: id, isError: id === "5" }));
  const messages = [
    { role: "assistant", content },
    { role: "tool", results },
  ];
  const get = (name: string) => tools.get(name);
  expect(openedPaths(messages as never, { get } as never)).toEqual(["a", "d"]);
});
