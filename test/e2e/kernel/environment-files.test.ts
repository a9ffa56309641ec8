import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { EventPayloadOf } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";
import type { TempProject } from "../../support/temp-project.ts";

const SECRET = "TOKEN=very-secret";

async function layOut(project: TempProject): Promise<void> {
  await project.write(".env", SECRET);
  await project.write(".env.local", SECRET);
  await project.write(".env.example", "TOKEN=");
  await project.write(".ENV.Production", SECRET);
  await project.write("sub/.env", SECRET);
  await project.write("sub/environment.ts", "export {};");
  await project.write("notes.env", "no guard");
  await mkdir(join(project.cwd, "far"));
  await symlink(join(project.cwd, ".env"), join(project.cwd, "plain.txt"));
  await symlink(join(project.cwd, "plain.txt"), join(project.cwd, "twice.txt"));
  await symlink(join(project.cwd, "sub"), join(project.cwd, "linked"));
  await symlink(join(project.cwd, "notes.env"), join(project.cwd, ".env.link"));
}

/** What became of reading each path, in a mode that refuses what it would ask about. */
async function readAll(
  paths: (project: TempProject) => readonly string[],
  permissions: Record<string, unknown> = ALLOW_ALL,
) {
  const kernel = await openTestKernel({
    agents: { primary: agentDocument(permissions) },
    prepare: layOut,
  });
  const calls = paths(kernel.project).map((filePath) => ({
    name: "read",
    arguments: { filePath },
  }));
  kernel.server.enqueue({ calls }, { text: "done" });
  const { watch } = await kernel.run("Read", { mode: "auto_approve_n" });
  const ends = new Map(
    watch
      .payloads("tool_call_terminated")
      .map((end) => [end.owner.content_index, end] as const)
      .sort(([a], [b]) => a - b),
  );
  return { ends: [...ends.values()].map(endOf), server: kernel.server };
}

function endOf({ result, error }: EventPayloadOf<"tool_call_terminated">): string {
  if (error === null) return result?.output ?? "";
  if (error.code !== "permission_denied") return error.code;
  return (JSON.parse(error.message) as { reason: string }).reason;
}

describe("[S-157] the guard of environment files", () => {
  test("asks by whatever way the file is reached, and nothing of it reaches the model", async () => {
    const { ends, server } = await readAll((project) => [
      ".env",
      "./sub/../.env",
      "sub/.env",
      "sub//./.env",
      join(project.cwd, ".env"),
      "plain.txt",
      "twice.txt",
      "linked/.env",
      ".env.local",
      ".ENV.Production",
      ".env.link",
      "/proc/self/environ",
      `/proc/${process.pid}/environ`,
      "/proc/self/task/../environ",
    ]);
    expect(ends).toEqual(Array.from({ length: 14 }, () => "auto_approve_n_rejected"));
    expect(JSON.stringify(server.requests)).not.toContain("very-secret");
  });

  test("stays silent on examples, and on names that only look alike", async () => {
    const { ends } = await readAll(() => [".env.example", "notes.env", "linked/environment.ts"]);
    expect(ends).toEqual([
      expect.stringContaining("TOKEN="),
      expect.stringContaining("no guard"),
      expect.stringContaining("export {}"),
    ]);
  });

  test("gives nothing where the agent may not read, and an explicit deny stays one", async () => {
    const { ends } = await readAll(() => [".env", "sub/.env", "notes.env"], {
      read: { "notes.env": "allow", "sub/*": "deny" },
    });
    expect(ends).toEqual(["policy_denied", "policy_denied", expect.stringContaining("no guard")]);
  });

  test("gives way to a rule that names the file as closely", async () => {
    const { ends } = await readAll(() => [".env", ".env.local", "sub/.env", "plain.txt"], {
      read: { "*": "allow", ".env": "allow" },
    });
    expect(ends).toEqual([
      expect.stringContaining(SECRET),
      "auto_approve_n_rejected",
      "auto_approve_n_rejected",
      expect.stringContaining(SECRET),
    ]);
  });

  test("does not look into commands, which have rules of their own", async () => {
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument({
          ...ALLOW_ALL,
          bash: { "*": "allow", "*.env*": "ask" },
        }),
      },
      answers: [
        {
          calls: ["cat notes.env", "cat .env", "cat ./.e''nv", "cat .e*"].map((command) => ({
            name: "bash",
            arguments: { command },
          })),
        },
        { text: "done" },
      ],
      prepare: layOut,
    });
    const { watch } = await kernel.run("Read", { mode: "auto_approve_n" });
    const finals = watch.payloads("approval_finalized").map(({ decision }) => decision.reason);
    expect(finals.length).toBeGreaterThanOrEqual(3);
    expect(new Set(finals)).toEqual(new Set(["auto_approve_n_rejected"]));
  });
});
