import { describe, expect, onTestFinished, test } from "vitest";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { runCookie } from "../../support/run-cookie.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

interface Check {
  readonly name: string;
  readonly status: string;
  readonly detail: string;
  readonly fix?: string;
}

async function diagnose(
  project: TempProject,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<{ exitCode: number | null; find(name: string): Check | undefined }> {
  const { exitCode, stdout } = await runCookie(project, ["doctor", "--json", ...args], { env });
  const { checks } = JSON.parse(stdout) as { checks: Check[] };
  return { exitCode, find: (name) => checks.find((check) => check.name === name) };
}

describe("cookie doctor", () => {
  test("[C-257] a fresh home is fine but for the missing model, and the fix is named", async () => {
    const project = await useProject();

    const text = await runCookie(project, ["doctor"]);
    const { exitCode, find } = await diagnose(project);

    expect(text).toMatchObject({ exitCode: 0, stderr: "" });
    expect(text.stdout).toMatch(/^warning {2}models: [^\n]+\n {9}fix: [^\n]*config\.toml/m);
    expect(exitCode).toBe(0);
    for (const name of ["node", "state directory", "file locks", "shell", "plugin builtin.fs"]) {
      expect(find(name)).toMatchObject({ status: "ok" });
    }
  });

  test("[C-257] a configured model counts, and without --network nothing connects to it", async () => {
    const project = await useProject();
    const server = await startModelServer();
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));

    const { exitCode, find } = await diagnose(project);

    expect(exitCode).toBe(0);
    expect(find("models")).toMatchObject({ status: "ok", detail: "custom.test/scripted" });
    expect(find("network custom.test")).toBeUndefined();
    expect(server.requests).toEqual([]);
  });

  test("[C-257] --network tells a provider that answers from one that does not", async () => {
    const project = await useProject();
    const server = await startModelServer();
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));

    const reachable = await diagnose(project, ["--network"]);
    // a port that was just given back may be somebody else's by now
    const nobody = { ...server, baseUrl: "http://127.0.0.1:1/v1" };
    await project.writeState("config.toml", providerToml(nobody));
    const unreachable = await diagnose(project, ["--network"]);

    expect(reachable.find("network custom.test")).toMatchObject({ status: "ok" });
    expect(unreachable.exitCode).toBe(1);
    expect(unreachable.find("network custom.test")).toMatchObject({ status: "failed" });
  });

  test("[C-257] a broken configuration is found with file and line", async () => {
    const project = await useProject();
    await project.writeState("config.toml", "\n[bugdet]\n");

    const { exitCode, find } = await diagnose(project);

    expect(exitCode).toBe(1);
    expect(find("configuration")).toMatchObject({
      status: "failed",
      detail: expect.stringMatching(/config\.toml:2: bugdet: .*budget/),
    });
  });

  test("[C-257] a state directory that is a file is found", async () => {
    const project = await useProject();
    const { home } = project;
    await project.write("home-of-another/.cookie-agent", "not a directory");

    const { exitCode, find } = await diagnose({
      ...project,
      home: `${project.cwd}/home-of-another`,
    });

    expect(home).not.toBe("");
    expect(exitCode).toBe(1);
    expect(find("state directory")).toMatchObject({ status: "failed" });
  });

  test("[C-257] a plugin that cannot start is found", async () => {
    const project = await useProject();
    await project.writeState("config.toml", '[plugins.broken]\ncommand = "/nowhere/plugin"\n');

    const { exitCode, find } = await diagnose(project);

    expect(exitCode).toBe(1);
    expect(find("plugin broken")).toMatchObject({ status: "failed" });
  });
});
