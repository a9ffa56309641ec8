import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadToml, makePipe, makeScenario, tomlFailure } from "./scenario.ts";

const plugin = (name: string, command = "/bin/cat") =>
  `[plugins.${name}]\ncommand = "${command}"\n`;

describe("layers", () => {
  test("[C-017] without any file every setting has its default", async () => {
    const { config, agents, notices, workspace } = await (await makeScenario()).load();
    expect(config).toMatchObject({
      server: { host: "127.0.0.1", port: 7419 },
      tools: { profile: "cookie", include: [], exclude: [] },
      budget: {},
      plugins: [],
    });
    expect([...agents.keys()]).toEqual(["explore"]);
    expect(notices).toEqual([]);
    expect(workspace).toMatchObject({ present: false, state: "absent", ignored: [] });
  });

  test("[C-017] an empty file is valid", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": "" },
      workspace: { "config.toml": "" },
    });
    expect((await scenario.load()).config.server.port).toBe(7419);
  });

  test("[C-018] a layer in a directory above cwd is not looked at", async () => {
    const scenario = await makeScenario({ workspace: { "config.toml": "[server]\nport = 1" } });
    const below = join(scenario.cwd, "below");
    await mkdir(below);
    const { config } = await scenario.load({ cwd: below });
    expect(config.server.port).toBe(7419);
  });

  test("[C-019] a workspace table replaces the whole user table", async () => {
    const scenario = await makeScenario({
      user: {
        "config.toml": "[tool_output]\nmax_lines = 5\nmax_bytes = 6\n[approval]\ntimeout_ms = 7",
      },
      workspace: { "config.toml": "[tool_output]\nmax_lines = 9" },
    });
    const { config } = await scenario.load();
    expect(config.toolOutput).toMatchObject({ maxLines: 9, maxBytes: 51_200 });
    expect(config.approval.timeoutMs).toBe(7);
  });

  test("[C-020] an entry of a map is replaced whole", async () => {
    const scenario = await makeScenario({
      user: {
        "config.toml": `${plugin("a", "/bin/one")}enabled = false\ntool_timeout_ms = 5\n${plugin("b", "/bin/two")}`,
      },
      workspace: { "config.toml": plugin("a", "/bin/three") },
    });
    const { config } = await scenario.load();
    expect(config.plugins).toMatchObject([
      { name: "a", layer: "workspace", enabled: true, toolTimeoutMs: 30_000 },
      { name: "b", layer: "user" },
    ]);
  });

  test("[C-021] plugins keep the user's order, replaced ones their place, new ones follow", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": plugin("zeta") + plugin("10") + plugin("2") + plugin("alpha") },
      workspace: { "config.toml": plugin("beta") + plugin("2") + plugin("1") },
    });
    const { config } = await scenario.load();
    expect(config.plugins.map(({ name, layer }) => `${name}:${layer}`)).toEqual([
      "zeta:user",
      "10:user",
      "2:workspace",
      "alpha:user",
      "beta:workspace",
      "1:workspace",
    ]);
  });

  test("[C-022] a broken user entry is an error although the workspace replaces it", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": "[plugins.a]\ncommand = 1" },
      workspace: { "config.toml": plugin("a") },
    });
    expect(await scenario.failure()).toMatchObject({ code: "invalid_type", layer: "user" });
  });

  test("[C-023] what was loaded does not change with the file", async () => {
    const scenario = await makeScenario({ user: { "config.toml": "[server]\nport = 1" } });
    const { config } = await scenario.load();
    await writeFile(join(scenario.root, "config.toml"), "[server]\nport = 2");
    expect(config.server.port).toBe(1);
    expect((await scenario.load()).config.server.port).toBe(2);
  });

  test("the home directory as project has one layer, the user's", async () => {
    const scenario = await makeScenario({ user: { "config.toml": "[server]\nport = 3" } });
    const loaded = await scenario.load({ cwd: scenario.home, trust: "stored" });
    expect(loaded.workspace.state).toBe("absent");
    expect(loaded.config.server.port).toBe(3);
  });
});

describe("files", () => {
  test("[C-005] no home directory is an error that says so", async () => {
    const scenario = await makeScenario();
    expect(await scenario.failure({ homeDir: "" })).toMatchObject({
      code: "not_found",
      problem: "there is no home directory",
    });
  });

  test("[C-024] a file over 1 MiB is refused and the limit named", async () => {
    const error = await tomlFailure("#".repeat(1024 * 1024 + 1));
    expect(error).toMatchObject({ code: "too_large" });
    expect(error.message).toContain("1048576");
  });

  test("[C-024] a file of exactly 1 MiB loads", async () => {
    await expect(loadToml("#".repeat(1024 * 1024))).resolves.toBeDefined();
  });

  test("a layer path that is a file is unsafe", async () => {
    const scenario = await makeScenario();
    await writeFile(scenario.layer, "");
    expect(await scenario.failure()).toMatchObject({ code: "unsafe_path", layer: "workspace" });
  });

  test("a pipe in place of the file is unsafe and does not block", async () => {
    const scenario = await makeScenario({ user: { "other.toml": "" } });
    makePipe(join(scenario.root, "config.toml"));
    expect(await scenario.failure()).toMatchObject({ code: "unsafe_path", layer: "user" });
  });

  test("[C-003] a linked user file is used as found", async () => {
    const scenario = await makeScenario({ user: { "real.toml": "[server]\nport = 4" } });
    await symlink(join(scenario.root, "real.toml"), join(scenario.root, "config.toml"));
    expect((await scenario.load()).config.server.port).toBe(4);
  });

  test("[B127] a broken file is reported and left alone, and a load writes nothing", async () => {
    const broken = "# mine\n[server]\nport = 1,\n";
    const scenario = await makeScenario({ user: { "config.toml": broken } });
    expect(await scenario.failure()).toMatchObject({ code: "toml_syntax", line: 3 });
    expect(await readFile(join(scenario.root, "config.toml"), "utf8")).toBe(broken);
    expect(await readdir(scenario.root)).toEqual(["config.toml"]);
  });
});
