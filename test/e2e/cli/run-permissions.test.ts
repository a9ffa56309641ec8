import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { jsonLines, runCookie } from "../../support/run-cookie.ts";
import { payloadsOf, readOnlyLog } from "../../support/session-log.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

const WRITE = 'call write {"filePath":"made.txt","content":"made"}';

function runWrite(project: TempProject, args: readonly string[]) {
  return runCookie(project, ["run", "-m", "offline/script", ...args, WRITE]);
}

async function wasMade(project: TempProject): Promise<boolean> {
  return access(join(project.cwd, "made.txt")).then(
    () => true,
    () => false,
  );
}

describe("a headless run that meets a rule that says ask", () => {
  test.for(["auto-approve", "auto_approve", "auto-approve-n", "ask"])(
    "[C-221] [C-226] [B137] is cancelled with 3 in the mode %s, and nothing happens",
    async (mode) => {
      const project = await useProject();

      const result = await runWrite(project, ["--permission-mode", mode]);

      expect(result).toMatchObject({ exitCode: 3, stdout: "" });
      expect(result.stderr).toMatch(/^error: cancelled: [^\n]*--allowed-tools[^\n]*\n$/);
      expect(await wasMade(project)).toBe(false);
      expect(payloadsOf(await readOnlyLog(project), "run_cancelled")).toHaveLength(1);
    },
  );

  test("[S-165] [C-221] is told at once that nobody is attended", async () => {
    const project = await useProject();

    const result = await runWrite(project, ["--json"]);

    expect(result.exitCode).toBe(3);
    const [decided] = payloadsOf(await readOnlyLog(project), "approval_finalized");
    expect(decided?.decision).toMatchObject({
      status: "rejected",
      source: "system",
      reason: "unattended",
    });
    expect(jsonLines(result.stdout).at(-1)).toMatchObject({
      type: "summary",
      status: "cancelled",
      exit_code: 3,
      approval_rejections: 1,
      cancellation: "permission",
      final_text: null,
    });
  });

  test.for(["yolo", "auto-approve-y"])("[C-221] goes on in the mode %s", async (mode) => {
    const project = await useProject();

    const result = await runWrite(project, ["--permission-mode", mode]);

    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await readFile(join(project.cwd, "made.txt"), "utf8")).toBe("made");
  });

  test.for([{ args: ["--allowed-tools", "write"] }, { args: ["--allowed-tools=read,write"] }])(
    "[C-222] goes on with $args",
    async ({ args }) => {
      const project = await useProject();

      const result = await runWrite(project, args);

      expect(result).toMatchObject({ exitCode: 0, stderr: "" });
      expect(await wasMade(project)).toBe(true);
    },
  );

  test("[C-222] is not helped by allowing something else", async () => {
    const project = await useProject();

    const result = await runWrite(project, ["--allowed-tools", "bash", "--allowed-tools", "read"]);

    expect(result.exitCode).toBe(3);
    expect(await wasMade(project)).toBe(false);
  });
});

describe("a model that reviews what a rule wants approved", () => {
  test.for([
    ["auto-approve", "allow", 0, true],
    ["auto-approve", "deny", 0, false],
    ["auto-approve", "ask", 3, false],
    ["auto-approve-n", "allow", 0, true],
    ["auto-approve-n", "ask", 3, false],
    ["auto-approve-y", "deny", 0, false],
    ["auto-approve-y", "ask", 0, true],
    ["ask", "allow", 3, false],
    ["yolo", "deny", 0, true],
  ] as const)(
    "[C-221] [S-161] in the mode %s, saying %s: exit code %s",
    async ([mode, decision, exitCode, made]) => {
      const project = await useProject();
      const server = await startModelServer(
        { calls: [{ name: "write", arguments: { filePath: "made.txt", content: "made" } }] },
        { text: "done" },
      );
      onTestFinished(() => server.close());
      server.answerAsides("approval", { text: JSON.stringify({ decision }) });
      await project.writeState("config.toml", providerToml(server));

      const result = await runCookie(project, ["run", "--permission-mode", mode, "Make it"]);

      expect(result.exitCode).toBe(exitCode);
      expect(await wasMade(project)).toBe(made);
      expect(server.asides).toHaveLength(mode === "ask" || mode === "yolo" ? 0 : 1);
    },
  );
});

test("a review that fails is told of where the session is shown", async () => {
  const project = await useProject();
  const server = await startModelServer({
    calls: [{ name: "write", arguments: { filePath: "made.txt", content: "made" } }],
  });
  onTestFinished(() => server.close());
  server.answerAsides("approval", {
    status: 401,
    body: { error: { message: "key\u001B[2J expired" } },
  });
  await project.writeState("config.toml", providerToml(server));

  expect((await runCookie(project, ["run", "Make it"])).exitCode).toBe(3);

  const [{ session_id } = { session_id: "" }] = await readOnlyLog(project);
  const shown = await runCookie(project, ["session", "show", session_id]);
  expect(shown.stdout).toMatch(/ agent {6}failed: .*key .*expired/);
  expect(shown.stdout).not.toContain("\u001B");
});

describe("an explicit deny", () => {
  test.for([{ args: ["--allowed-tools", "write"] }, { args: ["--permission-mode", "yolo"] }])(
    "[C-222] [C-240] beats $args, and the run goes on",
    async ({ args }) => {
      const project = await useProject();
      await project.writeState(
        "agents/careful.md",
        `---
description: writes only notes
mode: primary
enabled: true
models:
  - model: offline/script
permissions:
  write:
    "*": deny
    "*.md": allow
---
Write notes.
`,
      );

      const result = await runWrite(project, ["-a", "careful", ...args]);

      expect(result).toMatchObject({ exitCode: 0, stderr: "" });
      expect(await wasMade(project)).toBe(false);
      const [call] = payloadsOf(await readOnlyLog(project), "tool_call_terminated");
      expect(call?.error).toMatchObject({ code: "permission_denied" });
    },
  );
});
