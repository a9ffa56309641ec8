import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCookie } from "../../support/run-cookie.ts";
import { findLogs } from "../../support/session-log.ts";
import { useProject } from "../../support/use-project.ts";

const RUN = ["run", "-m", "offline/script", "say hi"] as const;

describe("a configuration that is wrong", () => {
  test("[C-032] ends a run with 5 and every other command with 1", async () => {
    const project = await useProject();
    await project.writeState("config.toml", "[budget]\nmax_turns = 'three'\n");

    const codes: (number | null)[] = [];
    for (const args of [RUN, ["session", "list"], ["tool", "list"]]) {
      const { exitCode, stdout, stderr } = await runCookie(project, args);
      expect(stdout).toBe("");
      expect(stderr).toMatch(/^error: [^\n]*config\.toml:2: budget\.max_turns: [^\n]+\n$/);
      expect(stderr).not.toContain("three");
      codes.push(exitCode);
    }

    expect(codes).toEqual([5, 1, 1]);
    expect(await findLogs(project)).toEqual([]);
  });

  test("[C-028] [C-030] [B124] an unknown key is named with file, line and the near one", async () => {
    const project = await useProject();
    await project.writeState(
      "config.toml",
      "# mine\n[mcp.servers.notes]\ncommand = 'notes'\ntimeout_sm = 5\n",
    );

    const { exitCode, stderr } = await runCookie(project, RUN);

    expect(exitCode).toBe(5);
    expect(stderr).toContain(`${join(project.stateDir, "config.toml")}:4: `);
    expect(stderr).toContain("mcp.servers.notes.timeout_sm");
    expect(stderr).toContain("timeout_ms");
  });

  test.for(["config.toml", "agents", "agents/x.md"])(
    "a %s that is a link to nothing is not taken for absent",
    async (name) => {
      const project = await useProject();
      const link = join(project.stateDir, name);
      await mkdir(dirname(link), { recursive: true });
      await symlink(join(project.home, "nowhere"), link);

      const { exitCode, stderr } = await runCookie(project, RUN);

      expect(exitCode).toBe(5);
      expect(stderr).toContain(link);
    },
  );

  test("a project's .cookie-agent that is a link to nothing is not taken for absent", async () => {
    const project = await useProject();
    const link = join(project.cwd, ".cookie-agent");
    await symlink(join(project.home, "nowhere"), link);

    const { exitCode, stderr } = await runCookie(project, RUN);

    expect(exitCode).toBe(5);
    expect(stderr).toContain(`${link}: is a link that leads nowhere`);
  });

  test("[C-025] [B125] a byte order mark before the first table is accepted", async () => {
    const project = await useProject();
    await project.writeState("config.toml", "\uFEFF[budget]\nmax_turns = 3\n");

    expect(await runCookie(project, RUN)).toMatchObject({ exitCode: 0, stdout: "hi\n" });
  });

  test("[C-025] [B127] a file that is no TOML is refused with its line and left as it is", async () => {
    const project = await useProject();
    const text = "[budget]\nmax_turns = 3,\n";
    const file = await project.writeState("config.toml", text);

    const { exitCode, stderr } = await runCookie(project, RUN);

    expect(exitCode).toBe(5);
    expect(stderr).toContain(`${file}:2`);
    expect(await readFile(file, "utf8")).toBe(text);
  });

  test("[C-031] with --json the error keeps its code and tells no value", async () => {
    const project = await useProject();
    await project.writeState(
      "config.toml",
      '[providers."custom.x"]\nsource = "custom"\nendpoint = "${env:NOT_SET_HERE}"\n',
    );

    const { exitCode, stdout, stderr } = await runCookie(project, [...RUN, "--json"]);

    expect(exitCode).toBe(5);
    expect(stdout).toBe("");
    const { error } = JSON.parse(stderr) as { error: { code: string; message: string } };
    expect(error.code).toBe("env_missing");
    expect(error.message).toContain("NOT_SET_HERE");
  });
});
