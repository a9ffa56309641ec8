import { access, readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCookie, runScript } from "../../support/run-cookie.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

const AGENT = `---
description: brought by the project
mode: primary
enabled: true
models:
  - model: offline/script
permissions:
  read: allow
---
Work.
`;

/** A project that brings an agent and a plugin, which leaves a mark when it is started. */
async function useForeignProject(): Promise<{
  project: TempProject;
  wasStarted(): Promise<boolean>;
}> {
  const project = await useProject();
  const mark = join(project.cwd, "started");
  await project.write(
    ".cookie-agent/config.toml",
    `[plugins.sneaky]
command = "${process.execPath}"
args = ["-e", "require('node:fs').writeFileSync('${mark}', '')"]

[budget]
max_turns = 7
`,
  );
  await project.write(".cookie-agent/agents/local.md", AGENT);
  const wasStarted = () =>
    access(mark).then(
      () => true,
      () => false,
    );
  return { project, wasStarted };
}

describe("a directory that brings configuration of its own", () => {
  test("[C-231] [C-237] [B140] nothing of it is started before trust, and one notice says what was skipped", async () => {
    const { project, wasStarted } = await useForeignProject();

    const result = await runScript(project, "say hi");
    const others = [
      await runCookie(project, ["tool", "list"]),
      await runCookie(project, ["session", "list"]),
      await runCookie(project, ["doctor"]),
    ];

    expect(result).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(result.stderr).toMatch(
      /^cookie run: [^\n]*\.cookie-agent: not trusted; ignored: \[plugins\], 1 agent\. Run `cookie trust`[^\n]*\n$/,
    );
    expect(others.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
    expect(others[2]?.stdout).toContain("cookie trust");
    expect(await wasStarted()).toBe(false);
  });

  test("[C-237] --trust-workspace trusts for one run and stores nothing", async () => {
    const { project, wasStarted } = await useForeignProject();

    const trusted = await runCookie(project, ["run", "-a", "local", "--trust-workspace", "say hi"]);
    const later = await runCookie(project, ["run", "-a", "local", "say hi"]);

    expect(trusted).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(await wasStarted()).toBe(true);
    expect(later.exitCode).toBe(5);
    expect(later.stderr).toContain("error: agent local is not available;");
    await expect(access(join(project.stateDir, "trust.json"))).rejects.toThrow();
  });

  test("[C-233] [C-236] trust holds for exactly the content that was there", async () => {
    const { project } = await useForeignProject();
    const run = () => runCookie(project, ["run", "-a", "local", "say hi"]);

    const given = await runCookie(project, ["trust", "--yes"]);
    const first = await run();
    await project.write(".cookie-agent/agents/another.md", AGENT);
    const second = await run();

    expect(given).toMatchObject({ exitCode: 0, stdout: `trusted: ${project.cwd}\n`, stderr: "" });
    expect(first).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(second.exitCode).toBe(5);
    expect(second.stderr).toContain("changed since it was trusted");
  });

  test("[C-235] [C-236] --list shows what is trusted, --revoke takes it back", async () => {
    const { project } = await useForeignProject();
    await runCookie(project, ["trust", "--yes"]);
    const { mode } = await stat(join(project.stateDir, "trust.json"));

    const listed = await runCookie(project, ["trust", "--list", "--json"]);
    const revoked = await runCookie(project, ["trust", "--revoke"]);
    const again = await runCookie(project, ["trust", "--revoke", "--json"]);
    const empty = await runCookie(project, ["trust", "--list"]);

    expect(mode & 0o777).toBe(0o600);
    expect(JSON.parse(listed.stdout)).toMatchObject({ workspaces: [{ directory: project.cwd }] });
    expect(revoked).toMatchObject({ exitCode: 0, stdout: "trust taken back\n" });
    expect(JSON.parse(again.stdout)).toEqual({ revoked: false });
    expect(empty).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
  });

  test("[C-236] without a terminal trust is a usage error that names --yes", async () => {
    const { project } = await useForeignProject();

    const result = await runCookie(project, ["trust"], { stdin: "y\n" });

    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain("--yes");
  });

  test("[C-235] a malformed trust store trusts nothing and is never overwritten", async () => {
    const { project } = await useForeignProject();
    const file = await project.writeState("trust.json", "{broken");

    const given = await runCookie(project, ["trust", "--yes"]);
    const listed = await runCookie(project, ["trust", "--list"]);

    expect(given.exitCode).toBe(1);
    expect(given.stderr).toContain(file);
    expect(listed.stderr).toContain(file);
    expect(await readFile(file, "utf8")).toBe("{broken");
  });

  test.for([
    { args: ["trust", "nowhere"], exitCode: 1, message: "the directory nowhere cannot be found" },
    { args: ["trust", "--list", "--revoke"], exitCode: 2, message: "--list stands alone" },
  ])("$args is refused", async ({ args, exitCode, message }) => {
    const result = await runCookie(await useProject(), args);

    expect(result).toMatchObject({ exitCode, stdout: "" });
    expect(result.stderr).toContain(message);
  });

  test("a directory without .cookie-agent has nothing to trust", async () => {
    const result = await runCookie(await useProject(), ["trust", "--yes"]);

    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    expect(result.stdout).toContain("nothing to trust");
  });

  test("[C-231] [C-232] a broken workspace file is an error, its ignored tables are not", async () => {
    const project = await useProject();
    await project.write(".cookie-agent/config.toml", "[plugins.x]\nnonsense = true\n");
    const ignored = await runScript(project, "say hi");
    await project.write(".cookie-agent/config.toml", "[plugins.x\n");
    const broken = await runScript(project, "say hi");

    expect(ignored).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(broken).toMatchObject({ exitCode: 5, stdout: "" });
    expect(broken.stderr).toContain(`${join(project.cwd, ".cookie-agent", "config.toml")}:1`);
  });
});

test("what cannot be trusted is named with its folder and the reason", async () => {
  const project = await useProject();
  await project.write(".cookie-agent", "a file, not a folder\n");
  expect(await runCookie(project, ["trust", "--yes"])).toMatchObject({
    exitCode: 1,
    stdout: "",
    stderr: `error: the .cookie-agent of ${await realpath(project.cwd)} cannot be trusted: it changed while it was read or cannot be read\n`,
  });
});
