import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { agentDocument } from "../../support/open-test-kernel.ts";
import { runCookie } from "../../support/run-cookie.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

const AGENT = `---
description: Under test
mode: primary
enabled: true
models:
  - model: offline/script
permissions:
  read: allow
  bash:
    "*": ask
    "git *": allow
    "git push *": deny
---
Be good.
`;

interface Printed {
  readonly explanation: {
    readonly effect: string;
    readonly visible: boolean;
    readonly outcome: string;
    readonly agent: string;
    readonly resources: readonly {
      readonly label: string;
      readonly effect: string;
      readonly labels: readonly {
        readonly label: string;
        readonly effect: string;
        readonly precedence_reason: string;
        readonly decided_by: { readonly resource: string; readonly source: string } | null;
        readonly candidates: readonly object[];
      }[];
    }[];
  };
}

async function projectWithAgent(): Promise<TempProject> {
  const project = await useProject();
  await project.writeState("agents/primary.md", AGENT);
  return project;
}

async function explain(project: TempProject, ...args: string[]): Promise<Printed["explanation"]> {
  const { stdout, stderr, exitCode } = await runCookie(project, [
    "permissions",
    "explain",
    ...args,
    "--json",
  ]);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return (JSON.parse(stdout) as Printed).explanation;
}

describe("permissions explain", () => {
  test("names the rule that decides, with its file and line, and what else matches", async () => {
    const project = await projectWithAgent();
    const path = join(project.stateDir, "agents/primary.md");
    const { effect, outcome, resources } = await explain(
      project,
      "bash",
      '{"command":"git push origin"}',
      "--permission-mode",
      "yolo",
    );
    expect({ effect, outcome }).toEqual({ effect: "deny", outcome: "refused" });
    expect(resources[0]?.labels[0]).toMatchObject({
      label: "git push origin",
      decided_by: {
        resource: "git push *",
        effect: "deny",
        source: "agent_document",
        literals: 9,
        wildcards: 1,
        place: { path, line: 12 },
      },
      precedence_reason: expect.stringContaining("more characters") as unknown,
    });
    expect(resources[0]?.labels[0]?.candidates).toMatchObject([
      { resource: "*", effect: "ask", place: { line: 10 } },
      { resource: "git *", effect: "allow", place: { line: 11 } },
      { resource: "git push *", effect: "deny", place: { line: 12 } },
    ]);
    const text = await runCookie(project, [
      "permissions",
      "explain",
      "bash",
      '{"command":"git status && git push origin"}',
    ]);
    expect(text.stdout).toContain(`decided by "git push *" deny, ${path}:12`);
    expect(text.stdout).toContain("a part that is denied denies the whole command");
  });

  test("[S-158] prepares the call for real: a link to an environment file is asked about for both its names", async () => {
    const project = await projectWithAgent();
    await project.write(".env", "SECRET=1");
    await symlink(join(project.cwd, ".env"), join(project.cwd, "plain.txt"));
    const { effect, resources } = await explain(project, "read", '{"filePath":"plain.txt"}');
    expect(effect).toBe("ask");
    expect(
      resources.map((one) => [one.label, one.effect, one.labels[0]?.decided_by?.source]),
    ).toEqual([
      ["plain.txt", "allow", "agent_document"],
      [".env", "ask", "guard"],
    ]);
  });

  test("says once what decides where the command and its action are decided alike", async () => {
    const project = await useProject();
    const { resources } = await explain(project, "bash", JSON.stringify({ command: "rm -rf x" }));
    expect(resources).toHaveLength(1);
    expect(resources[0]?.labels).toMatchObject([
      { label: "rm -rf x", effect: "ask", decided_by: { resource: "*" } },
    ]);
  });

  test("makes no call, keeps no session and takes no lock", async () => {
    const project = await projectWithAgent();
    await explain(project, "bash", '{"command":"git init && touch made"}');
    expect(await readdir(project.cwd)).toEqual([]);
    expect(await readdir(project.stateDir)).not.toContain("sessions");
    const before = await runCookie(project, ["session", "list", "--json"]);
    expect(JSON.parse(before.stdout)).toMatchObject({ sessions: [] });
  });

  test("[S-164] counts what is allowed by a flag, below an explicit deny", async () => {
    const project = await projectWithAgent();
    const allowed = await explain(project, "bash", '{"command":"ls"}', "--allowed-tools", "bash");
    expect(allowed.outcome).toBe("runs");
    expect(allowed.resources[0]?.labels[0]?.decided_by).toMatchObject({ set_by: "flag" });
    const denied = await explain(
      project,
      "bash",
      '{"command":"git push origin"}',
      "--allowed-tools",
      "bash",
    );
    expect(denied.effect).toBe("deny");
    expect(denied.resources[0]?.labels[0]?.precedence_reason).toContain("stands above flags");
  });

  test("counts the rules of a session that is named, and leaves it as it is", async () => {
    const project = await projectWithAgent();
    await runCookie(project, ["run", "say hi", "--allowed-tools", "bash"]);
    const list = await runCookie(project, ["session", "list", "--json"]);
    const { sessions } = JSON.parse(list.stdout) as { sessions: { session_id: string }[] };
    const id = sessions[0]?.session_id ?? "";
    const before = (await runCookie(project, ["session", "show", id, "--json"])).stdout;
    const { outcome, resources } = await explain(
      project,
      "bash",
      '{"command":"ls"}',
      "--resume-session",
      id,
    );
    expect(outcome).toBe("runs");
    expect(resources[0]?.labels[0]?.decided_by).toMatchObject({ set_by: "flag" });
    expect((await runCookie(project, ["session", "show", id, "--json"])).stdout).toBe(before);
  });

  test("says when the agent does not get the tool at all, and takes another agent", async () => {
    const project = await projectWithAgent();
    const call = ["write", '{"filePath":"a.txt","content":"x"}'];
    expect(await explain(project, ...call)).toMatchObject({ visible: false, effect: "deny" });
    const writer = agentDocument({ write: "ask" }, { models: ["offline/script"] });
    await project.writeState("agents/writer.md", writer);
    expect(await explain(project, ...call, "--agent", "writer")).toMatchObject({
      agent: "writer",
      visible: true,
      effect: "ask",
      outcome: "asks",
    });
  });

  test.for<[string, string[], number, RegExp]>([
    ["an unknown tool", ["raed"], 2, /no tool raed here; there are bash, edit, read, write/],
    ["no JSON", ["read", "{"], 2, /no JSON/],
    ["JSON that is no object", ["read", "[]"], 2, /JSON object/],
    ["arguments that the tool refuses", ["read", '{"filePath":1}'], 1, /"filePath" must be string/],
    ["a file that is not there", ["read", '{"filePath":"gone"}'], 1, /gone does not exist/],
    ["an unknown agent", ["read", "{}", "--agent", "nobody"], 5, /agent nobody/],
    ["an unknown mode", ["read", "{}", "--permission-mode", "maybe"], 2, /maybe/],
    ["a session that is none", ["read", "{}", "--resume-session", "x"], 1, /--resume-session/],
  ])("%s is said clearly", async ([, args, exitCode, message]) => {
    const project = await projectWithAgent();
    const result = await runCookie(project, ["permissions", "explain", ...args]);
    expect(result.exitCode).toBe(exitCode);
    expect(result.stderr).toMatch(message);
    expect(result.stderr).not.toContain("    at ");
    expect(result.stdout).toBe("");
  });

  test("text from outside cannot drive the terminal", async () => {
    const project = await projectWithAgent();
    const command = "ls \u001b]0;owned\u0007 \u202e";
    const { stdout } = await runCookie(project, [
      "permissions",
      "explain",
      "bash",
      JSON.stringify({ command }),
    ]);
    expect(stdout).toContain("ls ");
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  });
});
