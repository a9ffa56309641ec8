import { appendFile, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { jsonLines, runCookie, runScript } from "../../support/run-cookie.ts";
import { findLogs, readOnlyLog } from "../../support/session-log.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

async function makeSession(project: TempProject, script: string): Promise<string> {
  const { stdout } = await runScript(project, script, ["--json"]);
  return String(jsonLines(stdout).at(-1)?.["session_id"]);
}

describe("cookie session list", () => {
  test("lists the sessions of this directory, newest first, at most --limit", async () => {
    const project = await useProject();
    const empty = await runCookie(project, ["session", "list"]);
    const first = await makeSession(project, "say one");
    const second = await makeSession(project, "say two");

    const table = await runCookie(project, ["session", "list"]);
    const limited = await runCookie(project, ["session", "list", "--limit", "1", "--json"]);
    const elsewhere = await runCookie({ ...project, cwd: project.home }, ["session", "list"]);

    expect(empty).toMatchObject({ exitCode: 0, stdout: "no sessions in this directory yet\n" });
    const ids = table.stdout.split("\n").map((line) => line.split(" ")[0]);
    expect(ids).toEqual(["SESSION", second, first, ""]);
    expect(JSON.parse(limited.stdout)).toMatchObject({ sessions: [{ session_id: second }] });
    expect(elsewhere.stdout).toBe("no sessions in this directory yet\n");
  });

  test("names on stderr what it cannot read and lists the rest", async () => {
    const project = await useProject();
    const broken = await makeSession(project, "say one");
    const intact = await makeSession(project, "say two");
    const log = (await findLogs(project)).find((path) => path.includes(broken)) ?? "";
    for (const name of ["metadata", "events.jsonl"])
      await writeFile(join(dirname(log), name), "nonsense\n");

    const table = await runCookie(project, ["session", "list"]);
    const json = await runCookie(project, ["session", "list", "--json"]);

    expect(table).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(broken) as unknown,
    });
    expect(table.stdout).toContain(intact);
    expect(table.stdout).not.toContain(broken);
    expect(JSON.parse(json.stdout)).toMatchObject({
      sessions: [{ session_id: intact }],
      diagnostics: [expect.stringContaining(broken)],
    });
  });

  test("a title cannot control the terminal", async () => {
    const project = await useProject();
    await makeSession(project, "say \u001B]0;hidden\u0007 \u009B31m");

    const { stdout } = await runCookie(project, ["session", "list"]);
    const json = await runCookie(project, ["session", "list", "--json"]);

    expect(stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    expect(json.stdout.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });
});

describe("cookie session show", () => {
  test("tells what was asked, called and answered", async () => {
    const project = await useProject();
    await project.write("notes.txt", "a note");
    const id = await makeSession(
      project,
      'call read {"filePath":"notes.txt"}\n---\nsay \u001B[1mdone',
    );

    const { exitCode, stdout } = await runCookie(project, ["session", "show", id]);

    expect(exitCode).toBe(0);
    expect(stdout).toContain(`session   ${id}`);
    expect(stdout).toMatch(/^ +\d+ {2}\S+ {2}user {7}call read/m);
    expect(stdout).toMatch(/^ +\d+ {2}\S+ {2}call {7}read notes\.txt$/m);
    expect(stdout).toMatch(/^ +\d+ {2}\S+ {2}completed {2}.*a note/m);
    expect(stdout).toMatch(/^ +\d+ {2}\S+ {2}model {6}.*done$/m);
    expect(stdout).toMatch(/^ +\d+ {2}\S+ {2}run {8}completed$/m);
    expect(stdout).not.toContain("\u001B");
  });

  test("with --json is the session and every event of its log", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say done");

    const { stdout } = await runCookie(project, ["session", "show", "--json", id]);

    const shown = JSON.parse(stdout) as { session: object; events: object[] };
    expect(shown.session).toMatchObject({ session_id: id, status: "completed" });
    expect(shown.events).toEqual(await readOnlyLog(project));
  });

  test("a damaged last line is reported and hides nothing else", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say done");
    const [log] = await findLogs(project);
    await appendFile(String(log), '{"half":\n');

    const { exitCode, stdout } = await runCookie(project, ["session", "show", id]);

    expect(exitCode).toBe(0);
    expect(stdout).toContain("unreadable line");
    expect(stdout).toMatch(/model {6}done$/m);
  });

  test.for([
    ["nonsense", 'session show: "nonsense" is no session id'],
    ["01a22c7f-aff6-7000-aae4-2b4d70f8089d", "there is no session 01a22c7f"],
  ])("%s is an error that says where the ids are", async ([id, message]) => {
    const result = await runCookie(await useProject(), ["session", "show", id ?? ""]);

    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toContain(message);
    expect(result.stderr).toContain("cookie session list");
  });
});

describe("cookie session revert, fork and rename", () => {
  test("[S-229] [S-272] takes back the last run, or what comes after an event, and no file", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say one");
    const resume = ["--resume-session", id];
    await runScript(project, 'call write {"filePath":"made.txt","content":"kept"}', resume);
    const end = (await readOnlyLog(project)).find(
      ({ payload }) => payload.type === "run_completed",
    );
    const reverted = await runCookie(project, ["session", "revert", id]);
    expect(reverted).toMatchObject({
      exitCode: 0,
      stdout: `the session ends with its event ${end?.seq} again; files stay as they are\n`,
    });
    expect(await readFile(join(project.cwd, "made.txt"), "utf8")).toBe("kept");
    const json = await runCookie(project, ["session", "revert", id, "--through", "1", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      through_seq: 1,
      session: { session_id: id, status: "idle", title: null },
    });
    const none = await runCookie(project, ["session", "revert", id]);
    expect(none).toMatchObject({ exitCode: 1, stdout: "" });
    expect(none.stderr).toContain("the session has 0 runs, not 1");
    const shown = await runCookie(project, ["session", "show", id]);
    expect(shown.stdout).toMatch(/revert {5}what came after event 1 no longer counts/);
  });

  test("[S-230] prints the id of the fork, which goes on from where it was taken", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say one");
    await runScript(project, "say two", ["--resume-session", id]);
    const whole = (await runCookie(project, ["session", "fork", id])).stdout.trim();
    const shorter = (
      await runCookie(project, ["session", "fork", id, "--runs", "1"])
    ).stdout.trim();
    const run = await runScript(project, "say three", ["--resume-session", shorter]);
    expect(run.exitCode).toBe(0);
    const said = async (session: string) =>
      (await runCookie(project, ["session", "show", session])).stdout
        .split("\n")
        .filter((line) => line.includes("  user "))
        .map((line) => line.replace(/.*user +/, ""));
    expect(await said(whole)).toEqual(["say one", "say two"]);
    expect(await said(shorter)).toEqual(["say one", "say three"]);
    expect(await said(id)).toEqual(["say one", "say two"]);
    const { stdout } = await runCookie(project, ["session", "list"]);
    expect(stdout).toContain("say one (fork)");
  });

  test("[S-028] titles, clears and resets, and wants exactly one of them", async () => {
    const project = await useProject();
    const id = await makeSession(project, "say one");
    const rename = (...args: string[]) => runCookie(project, ["session", "rename", id, ...args]);
    expect((await rename("My \u001B[31mtitle")).stderr).toContain("no control characters");
    expect((await rename("My title")).stdout).toBe("My title\n");
    expect((await rename("--clear")).stdout).toBe("the session has no title\n");
    expect(JSON.parse((await rename("Other", "--json")).stdout)).toMatchObject({
      session: { title: "Other" },
    });
    expect((await rename("--reset")).exitCode).toBe(0);
    for (const args of [[], ["Title", "--clear"], ["--clear", "--reset"]]) {
      const { exitCode, stderr } = await rename(...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining("either a title")]);
    }
  });
});
