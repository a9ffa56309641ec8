import { describe, expect, test } from "vitest";
import { runCookie } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

describe("cookie tool list", () => {
  test("names owner, action and effect of each tool", async () => {
    const { exitCode, stdout, stderr } = await runCookie(await useProject(), ["tool", "list"]);

    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ +/).slice(0, 5));
    expect(rows).toContainEqual(["TOOL", "PLUGIN", "TIER", "ACTION", "EFFECT"]);
    expect(rows).toContainEqual(["bash", "builtin.bash", "first_party", "bash", "ask"]);
    expect(rows).toContainEqual(["read", "builtin.fs", "first_party", "read", "allow"]);
    expect(rows).toContainEqual(["write", "builtin.fs", "first_party", "write", "ask"]);
  });

  test("--agent counts the rules of that agent", async () => {
    const project = await useProject();
    await project.writeState(
      "agents/reader.md",
      `---
description: reads
mode: primary
enabled: true
models:
  - model: offline/script
permissions:
  read: allow
---
Read.
`,
    );

    const { stdout } = await runCookie(project, ["tool", "list", "--agent=reader", "--json"]);

    const { tools } = JSON.parse(stdout) as { tools: { name: string; effect: string }[] };
    const effects = Object.fromEntries(tools.map(({ name, effect }) => [name, effect]));
    expect(effects).toMatchObject({ read: "allow", write: "deny", bash: "deny" });
  });

  test("an unknown agent is an error", async () => {
    const result = await runCookie(await useProject(), ["tool", "list", "-a", "nobody"]);

    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toBe("error: agent nobody is not available; available agents: default\n");
  });
});
