import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadToml, makeScenario, tomlFailure } from "./scenario.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;

describe("plugin entries", () => {
  test("[C-055] an entry has these keys and defaults", async () => {
    const { config } = await loadToml('[plugins.one]\ncommand = "/bin/one"');
    expect(config.plugins).toEqual([
      {
        name: "one",
        layer: "user",
        launch: { kind: "command", command: "/bin/one", args: [] },
        env: {},
        enabled: true,
        interceptionTimeoutMs: 2000,
        startupTimeoutMs: 10_000,
        shutdownGraceMs: 3000,
        toolTimeoutMs: 30_000,
        config: {},
        trust: "untrusted",
        grants: [],
        required: false,
      },
    ]);
  });

  test("[C-055] every key is decoded", async () => {
    const { config } = await loadToml(`[plugins.one]
command = "one"
args = ["a"]
env = { PATH = "/bin" }
cwd = "/tmp"
enabled = false
interception_timeout_ms = 1
startup_timeout_ms = 2
shutdown_grace_ms = 3
tool_timeout_ms = 4
config = { n = 1, deep = [{ f = 1.5 }] }
trust = "trusted"
integrity = "${DIGEST}"
grants = ["bash", "env.inherit", "goals"]
required = true`);
    expect(config.plugins[0]).toEqual({
      name: "one",
      layer: "user",
      launch: { kind: "command", command: "one", args: ["a"] },
      env: { PATH: "/bin" },
      cwd: "/tmp",
      enabled: false,
      interceptionTimeoutMs: 1,
      startupTimeoutMs: 2,
      shutdownGraceMs: 3,
      toolTimeoutMs: 4,
      config: { n: 1, deep: [{ f: 1.5 }] },
      trust: "trusted",
      integrity: DIGEST,
      grants: ["bash", "env.inherit", "goals"],
      required: true,
    });
  });

  test.for([
    "interception_timeout_ms",
    "startup_timeout_ms",
    "shutdown_grace_ms",
    "tool_timeout_ms",
  ])("[C-055] %s is positive", async (key) => {
    expect(await tomlFailure(`[plugins.a]\ncommand = "/a"\n${key} = 0`)).toMatchObject({
      code: "invalid_value",
      key: `plugins.a.${key}`,
    });
  });

  test.for([
    ['command = "one"', "invalid_value", "plugins.a.command"],
    ['command = ""', "invalid_value", "plugins.a.command"],
    ['command = "/a"\ncwd = ""', "invalid_value", "plugins.a.cwd"],
    ['command = "/a"\ngrants = ["plugin"]', "invalid_value", "plugins.a.grants[0]"],
    ['command = "/a"\nintegrity = "abc"', "invalid_value", "plugins.a.integrity"],
    ['path = "a"\nargs = []', "conflict", "plugins.a.args"],
    ['package = "../evil"', "invalid_value", "plugins.a.package"],
  ] as const)("%j is refused", async ([lines, code, key]) => {
    expect(await tomlFailure(`[plugins.a]\n${lines}`)).toMatchObject({ code, key });
  });

  test.for([
    ["", "missing_key"],
    ['command = "/a"\npath = "b"', "conflict"],
    ['path = "b"\npackage = "c"', "conflict"],
  ] as const)("[C-057] exactly one of command, path, package: %j", async ([lines, code]) => {
    expect(await tomlFailure(`[plugins.a]\n${lines}`)).toMatchObject({ code });
  });

  test("[C-057] paths and packages resolve from the declaring directory", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": '[plugins.a]\npath = "mine"\n[plugins.b]\npackage = "@acme/b"' },
      workspace: { "config.toml": '[plugins.c]\npath = "../tools"\n[plugins.d]\npackage = "gone"' },
    });
    const installed = join(scenario.home, "node_modules", "@acme/b");
    await mkdir(installed, { recursive: true });
    const { config } = await scenario.load();
    expect(config.plugins.map(({ launch }) => launch)).toEqual([
      { kind: "path", directory: join(scenario.root, "mine") },
      { kind: "package", package: "@acme/b", directory: installed },
      { kind: "path", directory: join(scenario.cwd, "tools") },
      { kind: "package", package: "gone", directory: null },
    ]);
  });

  test.for(["trust = 'untrusted'", `integrity = '${DIGEST}'`, "grants = []", "required = false"])(
    "[C-243] [C-058] %s is refused in a workspace",
    async (line) => {
      const scenario = await makeScenario({
        workspace: { "config.toml": `[plugins.a]\ncommand = "/a"\n${line}` },
      });
      expect(await scenario.failure()).toMatchObject({
        code: "plugin_invalid",
        layer: "workspace",
        line: 3,
      });
    },
  );

  test("[C-059] trusted needs a digest", async () => {
    const toml = '[plugins.a]\ncommand = "/a"\ntrust = "trusted"';
    expect(await tomlFailure(toml)).toMatchObject({
      code: "missing_key",
      key: "plugins.a.integrity",
    });
  });

  test("[C-238] a workspace entry in place of a trusted one is untrusted", async () => {
    const scenario = await makeScenario({
      user: {
        "config.toml": `[plugins.a]\ncommand = "/a"\ntrust = "trusted"\nintegrity = "${DIGEST}"`,
      },
      workspace: { "config.toml": '[plugins.a]\ncommand = "/b"' },
    });
    expect((await scenario.load()).config.plugins).toMatchObject([
      { layer: "workspace", trust: "untrusted", required: false },
    ]);
  });

  test("[C-243] a workspace entry in place of a required one is refused where it stands", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": '[plugins.a]\ncommand = "/a"\nrequired = true' },
      workspace: { "config.toml": '[plugins.a]\ncommand = "/b"' },
    });
    await expect(scenario.load()).rejects.toMatchObject({
      code: "plugin_invalid",
      layer: "workspace",
      key: "plugins.a",
    });
  });

  test.for([
    ["a".repeat(128), true],
    ["a".repeat(129), false],
    ["Upper", false],
  ] as const)("[C-006] plugin name %s: %s", async ([name, valid]) => {
    const toml = `[plugins."${name}"]\ncommand = "/a"`;
    const outcome = valid ? loadToml(toml).then(() => "ok") : tomlFailure(toml);
    expect(await outcome).toEqual(
      valid ? "ok" : expect.objectContaining({ code: "plugin_invalid" }),
    );
  });
});

describe("first-party entries", () => {
  test("[C-060] switch, timeouts, required and config can be set", async () => {
    const { config } = await loadToml(
      '[plugins."builtin.extra"]\nenabled = false\ntool_timeout_ms = 9\nrequired = true\nconfig = { shell = "/bin/sh" }',
    );
    expect(config.plugins).toMatchObject([
      {
        launch: { kind: "builtin" },
        enabled: false,
        toolTimeoutMs: 9,
        required: true,
        config: { shell: "/bin/sh" },
      },
    ]);
  });

  test.for([
    'command = "/a"',
    'path = "a"',
    'package = "a"',
    "args = []",
    "env = {}",
    'cwd = "/"',
    'trust = "untrusted"',
    `integrity = "${DIGEST}"`,
    "grants = []",
  ])("[C-060] %s cannot be set", async (line) => {
    expect(await tomlFailure(`[plugins."builtin.extra"]\n${line}`)).toMatchObject({
      code: "plugin_invalid",
      line: 2,
    });
  });

  test("[C-060] an unknown id is refused with the nearest one", async () => {
    expect(await tomlFailure('[plugins."builtin.exta"]')).toMatchObject({
      code: "plugin_invalid",
      key: 'plugins."builtin.exta"',
      advice: "did you mean builtin.extra?",
    });
  });

  test("[C-060] a required one cannot be disabled", async () => {
    expect(await tomlFailure('[plugins."builtin.files"]\nenabled = false')).toMatchObject({
      code: "plugin_invalid",
      key: 'plugins."builtin.files".enabled',
      line: 2,
    });
  });
});

describe("tools", () => {
  test.for(["cookie", "special"])(
    "[C-248] [C-062] profile %s of a manifest is accepted",
    async (profile) => {
      const { config } = await loadToml(`[tools]\nprofile = "${profile}"`);
      expect(config.tools.profile).toBe(profile);
    },
  );

  test("[C-062] another profile is refused with the registered ones", async () => {
    expect(await tomlFailure('[tools]\nprofile = "none"')).toMatchObject({
      key: "tools.profile",
      line: 2,
      advice: "registered are cookie, special",
    });
  });

  test("[C-062] the default profile exists without any manifest", async () => {
    await expect(
      loadToml('[tools]\nprofile = "cookie"', { firstParty: [] }),
    ).resolves.toBeDefined();
  });

  test.for([
    ['include = ["look", "look"]', "invalid_value", "tools.include[1]"],
    ['include = ["look"]\nexclude = ["look"]', "conflict", "tools.exclude[0]"],
    ['exclude = ["lok"]', "runtime_invalid", "tools.exclude[0]"],
    ['include = ["a b"]', "invalid_value", "tools.include[0]"],
  ] as const)("[C-063] %s is refused", async ([lines, code, key]) => {
    expect(await tomlFailure(`[tools]\n${lines}`)).toMatchObject({ code, key });
  });

  test("[C-063] patterns may overlap with literals", async () => {
    const { config } = await loadToml('[tools]\ninclude = ["look*"]\nexclude = ["look"]');
    expect(config.tools).toMatchObject({ include: ["look*"], exclude: ["look"] });
  });

  test("[C-063] a literal may be the tool of a configured server", async () => {
    const toml = '[tools]\nexclude = ["docs_drop"]\n[mcp.servers.docs]\ncommand = "docs"';
    await expect(loadToml(toml)).resolves.toBeDefined();
  });

  test("[C-065] the table of a trusted workspace replaces the user's", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": '[tools]\nexclude = ["look"]' },
      workspace: {
        "config.toml":
          '[tools]\nprofile = "special"\nimplementations = { gather = "mine" }\n[plugins.mine]\ncommand = "/m"',
      },
    });
    expect((await scenario.load()).config.tools).toEqual({
      profile: "special",
      include: [],
      exclude: [],
      implementations: new Map([["gather", "mine"]]),
    });
    expect((await scenario.load({ trust: "stored" })).config.tools.exclude).toEqual(["look"]);
  });

  test.for([
    ["", "builtin.files", true],
    ["", "gone", false],
    ['[plugins.mine]\ncommand = "/m"', "mine", true],
    ['[plugins.mine]\ncommand = "/m"\nenabled = false', "mine", false],
    ['[plugins."builtin.extra"]\nenabled = false', "builtin.extra", false],
  ] as const)(
    "[C-066] with %j the mapping to %s is accepted: %s",
    async ([lines, plugin, valid]) => {
      const toml = `[tools.implementations]\nlook = "${plugin}"\n${lines}`;
      const outcome = valid ? loadToml(toml).then(() => "ok") : tomlFailure(toml);
      expect(await outcome).toEqual(
        valid
          ? "ok"
          : expect.objectContaining({ code: "runtime_invalid", key: "tools.implementations.look" }),
      );
    },
  );
});
