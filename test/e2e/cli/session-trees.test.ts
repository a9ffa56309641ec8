import {
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { jsonLines, runCookie, runScript, startCookie } from "../../support/run-cookie.ts";
import { CAN_OPEN_TERMINAL, runInTerminal } from "../../support/run-in-terminal.ts";
import { findLogs, readOnlyLog } from "../../support/session-log.ts";
import { storeChild } from "../../support/stored-child.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

async function makeSession(project: TempProject, script: string): Promise<SessionId> {
  const { stdout } = await runScript(project, script, ["--json"]);
  return String(jsonLines(stdout).at(-1)?.["session_id"]) as SessionId;
}

const session = (project: TempProject, ...words: string[]) =>
  runCookie(project, ["session", ...words]);

describe("cookie session tree", () => {
  test("shows what was delegated below its parent, and names what cannot be read", async () => {
    const project = await useProject();
    const root = await makeSession(project, "say one");
    const child = await storeChild(project, root);
    const below = await storeChild(project, root, { parentId: child.sessionId, depth: 2 });

    const shown = await session(project, "tree", root);
    expect(shown).toMatchObject({ exitCode: 0, stderr: "" });
    expect(
      shown.stdout.split("\n").map((line) => line.split(/ {2,}/)[0] || line.trim().split("  ")[0]),
    ).toEqual(["SESSION", root, `└─ ${child.sessionId}`, `└─ ${below.sessionId}`, ""]);
    const { tree } = JSON.parse((await session(project, "tree", "--json", root)).stdout) as {
      tree: { children: { session: { session_id: string } }[] };
    };
    expect(tree.children[0]?.session.session_id).toBe(child.sessionId);

    await writeFile(below.log, "nonsense\n");
    const damaged = await session(project, "tree", root);
    expect(damaged.stderr).toContain(below.sessionId);
    expect(damaged.stdout).not.toContain(below.sessionId);
  });
});

describe("cookie session list", () => {
  test("narrows by state and time, and reaches the sessions of other directories", async () => {
    const project = await useProject();
    const other = { ...project, cwd: join(project.home, "other") };
    await mkdir(other.cwd);
    const here = await makeSession(project, "say one");
    const there = await makeSession(other, "say two");

    const ids = async (...flags: string[]) => {
      const { stdout } = await session(project, "list", "--json", ...flags);
      const { sessions } = JSON.parse(stdout) as { sessions: { session_id: string }[] };
      return sessions.map(({ session_id }) => session_id);
    };
    expect(await ids()).toEqual([here]);
    expect(await ids("--all")).toEqual([there, here]);
    expect(await ids("--all", "--limit", "1")).toEqual([there]);
    expect(await ids("--status", "completed")).toEqual([here]);
    expect(await ids("--status", "failed", "--status", "cancelled")).toEqual([]);
    expect(await ids("--since", "1h")).toEqual([here]);
    expect(await ids("--since", "2999-01-01")).toEqual([]);
    const table = await session(project, "list", "--all");
    expect(table.stdout).toContain(other.cwd);
    expect(await session(project, "list", "--since", "yesterday")).toMatchObject({ exitCode: 2 });
    expect((await session(project, "list", "--status", "failed")).stdout).toBe(
      "no such sessions\n",
    );
  });
});

describe("cookie session export", () => {
  test("writes every event as a line, or the conversation as it counts", async () => {
    const project = await useProject();
    await project.write("notes.txt", "a ``` note");
    const id = await makeSession(
      project,
      'call read {"filePath":"notes.txt"}\n---\nsay \u001B[1mdone',
    );
    const lines = await session(project, "export", id);
    expect(jsonLines(lines.stdout)).toEqual(await readOnlyLog(project));
    const document = await session(project, "export", id, "--json");
    expect(JSON.parse(document.stdout)).toMatchObject({ session: { session_id: id } });

    const before = await session(project, "export", id, "--format", "markdown");
    expect(before.stdout).toContain("### read: notes.txt");
    expect(before.stdout).toMatch(/^````\n.*a ``` note.*\n````$/ms);
    expect(before.stdout).toContain("done");
    expect(before.stdout).not.toContain("\u001B");

    await session(project, "revert", id, "--runs", "1");
    const after = await session(project, "export", id, "--format", "markdown");
    expect(after.stdout).not.toContain("notes.txt");
    expect((await session(project, "export", id)).stdout).toContain("notes.txt");
  });

  test("writes a new file for its owner alone, and replaces none", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say done");
    const path = join(project.cwd, "session.jsonl");
    const words = ["export", id, "-o", "session.jsonl"];
    expect(await session(project, ...words)).toMatchObject({ exitCode: 0, stdout: "" });
    expect(jsonLines(await readFile(path, "utf8"))).toEqual(await readOnlyLog(project));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await writeFile(path, "mine");
    const again = await session(project, ...words);
    expect(again).toMatchObject({ exitCode: 1, stdout: "" });
    expect(again.stderr).toContain("exists already");
    expect(await readFile(path, "utf8")).toBe("mine");
  });
});

describe("cookie session rm", () => {
  test("removes a tree with all below it and nothing beside it, links not followed", async () => {
    const project = await useProject();
    const [root, kept] = [
      await makeSession(project, "say one"),
      await makeSession(project, "say two"),
    ];
    const child = await storeChild(project, root);
    const outside = join(project.home, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "precious"), "mine");
    await symlink(outside, join(dirname(child.log), "link"));

    const removed = await session(project, "rm", "--yes", root);
    expect(removed).toMatchObject({
      exitCode: 0,
      stdout: `removed ${root}\nremoved ${child.sessionId}\n`,
    });
    const [log] = await findLogs(project);
    const store = dirname(dirname(String(log)));
    expect((await readdir(store)).filter((name) => name.includes(root))).toEqual([]);
    expect(await findLogs(project)).toEqual([expect.stringContaining(kept)]);
    expect(await readFile(join(outside, "precious"), "utf8")).toBe("mine");
    expect((await session(project, "show", root)).stderr).toContain("there is no session");
  });

  test("asks nobody without a terminal, and removes nothing then", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say one");
    expect(await session(project, "rm", id)).toMatchObject({ exitCode: 2, stdout: "" });
    expect(await findLogs(project)).toHaveLength(1);
  });

  test.skipIf(!CAN_OPEN_TERMINAL)("asks on a terminal; the default is no", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say one");
    const answer = (text: string) =>
      runInTerminal(project, ["session", "rm", id], { type: [{ after: "[y/N]", text }] });
    expect(await answer("\n")).toMatchObject({ exitCode: 1 });
    expect(await findLogs(project)).toHaveLength(1);
    expect(await answer("y\n")).toMatchObject({ exitCode: 0 });
    expect(await findLogs(project)).toEqual([]);
  });

  test.skipIf(process.platform === "win32")(
    "[S-076] a link in the place of a session is no session to any command, and stays",
    async () => {
      const project = await useProject();
      const id = await makeSession(project, "say one");
      const root = dirname((await findLogs(project))[0] ?? "");
      const moved = join(project.home, "moved");
      await rename(root, moved);
      await symlink(moved, root);
      const listed = await session(project, "list", "--json");
      expect(JSON.parse(listed.stdout)).toMatchObject({ sessions: [] });
      for (const words of [
        ["show", id],
        ["tree", id],
        ["rm", "--yes", id],
      ]) {
        const refused = await session(project, ...words);
        expect(refused.exitCode).not.toBe(0);
        expect(refused.stderr).toContain(`there is no session ${id} `);
      }
      expect(await readdir(moved)).toContain("events.jsonl");
      expect((await lstat(root)).isSymbolicLink()).toBe(true);
    },
  );

  test("one that cannot be removed is named and does not keep the others", async () => {
    const project = await useProject();
    const [root, other] = [
      await makeSession(project, "say one"),
      await makeSession(project, "say two"),
    ];
    const child = await storeChild(project, root);
    const result = await session(project, "rm", "--yes", child.sessionId, other);
    expect(result).toMatchObject({ exitCode: 1, stdout: `removed ${other}\n` });
    expect(result.stderr).toContain(`together with its root ${root}`);
    expect(await findLogs(project)).toHaveLength(2);
  });

  test("[S-082] leaves a session alone that another process runs", async () => {
    const project = await useProject();
    const running = startCookie(project, [
      "run",
      "--model",
      "offline/script",
      "--permission-mode",
      "yolo",
      "-p",
      'call bash {"command":"touch on; sleep 600"}',
    ]);
    await expect.poll(() => readdir(project.cwd)).toContain("on");
    const [log] = await findLogs(project);
    const id = String(log).split("/").at(-2) as SessionId;
    const result = await session(project, "rm", "--yes", id);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toContain("in use by another cookie process");
    expect(await findLogs(project)).toHaveLength(1);
    running.child.kill("SIGINT");
    await running.result;
  });
});
