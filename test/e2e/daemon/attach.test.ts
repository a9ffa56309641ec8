import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openDaemon } from "../../support/open-daemon.ts";
import { runCookie } from "../../support/run-cookie.ts";
import { SessionWatch } from "../../support/session-watch.ts";
import { useProject } from "../../support/use-project.ts";

describe("a command that can attach", () => {
  test("[C-256] [D-131] says the same of a daemon as in a process of its own", async () => {
    const daemon = await openDaemon({ answers: [{ text: "hello" }] });
    const client = await daemon.connect();
    const { sessionId, runId } = await daemon.startRun(client, "Hi");
    await new SessionWatch(client, sessionId).end(runId);
    const commands = [
      ["session", "list"],
      ["session", "list", "--json"],
      ["session", "list", "--all", "--status", "completed"],
      ["session", "tree", sessionId],
      ["session", "tree", sessionId, "--json"],
      ["session", "export", sessionId],
      ["session", "export", sessionId, "--format", "markdown"],
      ["session", "export", sessionId, "--json"],
      ["session", "show", "01a22e96-4c2c-7000-8655-8661b67d0ebf"],
      ["session", "rm", "nonsense", "--yes"],
      ["usage"],
      ["usage", "--json", "--session", sessionId],
      ["tool", "list"],
      ["tool", "list", "--json"],
      ["tool", "list", "--agent", "nobody"],
      ["plugin", "list"],
      ["plugin", "status", "nobody"],
    ];
    for (const command of commands) {
      // A daemon says whose the session is; else every byte is the same.
      const own = await runCookie(daemon.project, command);
      const attached = await daemon.cookie(command);
      const neutral = { ...attached, stdout: attached.stdout.replace('"owned"', '"foreign"') };
      expect(neutral, command.join(" ")).toEqual(own);
    }
  });

  test("[C-256] changes sessions that the daemon holds", async () => {
    const daemon = await openDaemon({
      answers: [{ text: "one word ".repeat(2000) }, { text: "two" }],
    });
    const client = await daemon.connect();
    const { sessionId, runId } = await daemon.startRun(client, "Hi");
    const watch = new SessionWatch(client, sessionId);
    await watch.end(runId);
    const second = await daemon.startRun(client, "More", { session: sessionId });
    await watch.end(second.runId);

    daemon.server.answerAsides("context_compaction", { text: "A summary." });
    const foreign = await runCookie(daemon.project, ["session", "rename", sessionId, "Mine"]);
    expect(foreign).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("in use by another"),
    });
    expect(await daemon.cookie(["session", "rename", sessionId, "Mine"])).toMatchObject({
      exitCode: 0,
      stdout: "Mine\n",
    });
    const shown = await daemon.cookie(["session", "show", sessionId]);
    expect(shown.stdout).toMatch(/^title {5}Mine$/m);
    const forked = await daemon.cookie(["session", "fork", sessionId, "--runs", "1"]);
    expect(forked).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await daemon.cookie(["session", "revert", sessionId])).toMatchObject({ exitCode: 0 });
    expect(await daemon.cookie(["session", "compact", sessionId])).toMatchObject({
      exitCode: 0,
      stdout: "summarized\n",
    });
    const removed = await daemon.cookie([
      "session",
      "rm",
      "--yes",
      sessionId,
      forked.stdout.trim(),
    ]);
    expect(removed).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await daemon.cookie(["session", "list"])).stdout).toBe(
      "no sessions in this directory yet\n",
    );
    await watch.ended;
  });

  test("[D-007] [C-213] takes the options before the command's name too, and the flag before the variable", async () => {
    const daemon = await openDaemon();
    const { url, token, project } = daemon;
    const empty = { exitCode: 0, stdout: "no sessions in this directory yet\n", stderr: "" };
    const wrong = { env: { COOKIE_DAEMON_TOKEN: "w".repeat(43) } };
    for (const line of [
      ["--url", url, "--token", token, "session", "list"],
      ["session", "--token", token, "list", "--url", url],
      ["session", "list", `--token=${token}`, `--url=${url.replace("127.0.0.1", "LocalHost")}`],
    ]) {
      expect(await runCookie(project, line, wrong), line.join(" ")).toMatchObject(empty);
    }
    const refused = await runCookie(project, ["session", "list", "--url", url], wrong);
    expect(refused).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/^error: the daemon refused the token; .*\n$/),
    });
    expect(refused.stderr).not.toContain("www");
  });

  test("[C-214] [C-215] [D-007] refuses what cannot be an address or a token, each with its own words", async () => {
    const project = await useProject();
    const token = "t".repeat(43);
    const attempt = async (args: readonly string[], env: Record<string, string> = {}) => {
      const { exitCode, stdout, stderr } = await runCookie(project, ["session", "list", ...args], {
        env,
      });
      expect({ exitCode, stdout }, args.join(" ")).toEqual({ exitCode: 2, stdout: "" });
      expect(stderr).toMatch(/^error: [^\n]*\n$/);
      expect(stderr).not.toContain("ttt");
      return stderr;
    };
    const COOKIE_DAEMON_TOKEN = token;
    const urls = [
      "127.0.0.1",
      "http://127.0.0.1:7419/ws",
      "ws://u:p@127.0.0.1:7419/ws",
      "ws://192.168.0.1:7419/ws",
      "ws://127.0.0.1:7419/",
      "ws://127.0.0.1:7419/ws?token=x",
      "ws://127.0.0.1:7419/ws#x",
    ];
    const said = await Promise.all(
      urls.map((url) => attempt(["--url", url], { COOKIE_DAEMON_TOKEN })),
    );
    expect(new Set(said).size).toBe(urls.length);
    expect(await attempt(["--url", "ws://127.0.0.1:7419/ws"])).toContain("set COOKIE_DAEMON_TOKEN");
    expect(await attempt([], { COOKIE_DAEMON_TOKEN: "" })).toContain(
      "COOKIE_DAEMON_TOKEN is empty",
    );
    expect(await attempt(["--token", "t".repeat(42)])).toContain("43 letters");
    expect(await attempt(["--token", ""])).toContain("--token needs a value");
    expect(await attempt(["--token", token, "--data-dir", "x"])).toContain("--data-dir");
    const reload = await runCookie(project, ["plugin", "reload", "echo"]);
    expect(reload).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("a daemon wants its token"),
    });
  });

  test("names the address where no daemon answers", async () => {
    const project = await useProject();
    const env = { COOKIE_DAEMON_TOKEN: "t".repeat(43) };
    const args = ["session", "list", "--url", "ws://127.0.0.1:9/ws"];
    expect(await runCookie(project, args, { env })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("no daemon answers at ws://127.0.0.1:9/ws (ECONNREFUSED)"),
    });
    expect((await runCookie(project, [...args, "--json"], { env })).stderr).toContain(
      '"code":"unreachable"',
    );
  });
});

test("session files that an attached command writes are those of the command, not of the daemon", async () => {
  const daemon = await openDaemon({ answers: [{ text: "hello" }] });
  const client = await daemon.connect();
  const { sessionId, runId } = await daemon.startRun(client, "Hi");
  await new SessionWatch(client, sessionId).end(runId);
  const file = join(daemon.project.home, "export.jsonl");
  const exported = await daemon.cookie(["session", "export", sessionId, "-o", file]);
  expect(exported).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
  expect(await readFile(file, "utf8")).toContain('"run_completed"');
});
