import { linkSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  digestWorkspace,
  grantTrust,
  listTrust,
  readTrust,
  revokeTrust,
} from "../../../../kernel/src/config/workspace-trust.ts";
import { makePipe, makeScenario, type Scenario, writeFiles } from "./scenario.ts";

const agent = (description: string) =>
  `---\ndescription: ${description}\nmode: subagent\nenabled: true\nmodels: []\n---\nWork.\n`;

const EXECUTABLE = {
  "config.toml": `[server]
port = 1
[pricing.models."p/m"]
[providers."custom.x"]
nonsense = "\${env:GONE}"
[plugins.evil]
command = 1
[mcp.servers.evil]
[tools]
profile = "gone"
[approval]
timeout_ms = 5
`,
  "agents/evil.md": "no frontmatter",
  "agents/explore.md": "no frontmatter",
  "skills/evil/SKILL.md": "none",
};

async function digestOf(layer: string): Promise<string> {
  const found = await digestWorkspace(layer);
  if (!found.trustable) throw new Error(found.reason);
  return found.digest;
}

async function trust({ root, cwd, layer }: Scenario): Promise<void> {
  await grantTrust({ root, directory: cwd, digest: await digestOf(layer) });
}

describe("before trust", () => {
  test("[C-231] what a workspace could execute is not even decoded, and shadows nothing", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": "[server]\nport = 9" },
      workspace: EXECUTABLE,
    });
    const { config, agents, workspace } = await scenario.load({ trust: "stored" });
    expect(config).toMatchObject({ server: { port: 9 }, plugins: [], approval: { timeoutMs: 5 } });
    expect(config.providers.size + config.mcp.servers.size + config.pricing.models.size).toBe(0);
    expect(config.tools.profile).toBe("cookie");
    expect(agents.get("explore")?.source).toBe("built_in");
    expect(agents.has("evil")).toBe(false);
    expect(workspace).toMatchObject({
      directory: scenario.cwd,
      present: true,
      state: "untrusted",
      ignored: [
        "[providers]",
        "[plugins]",
        "[mcp]",
        "[tools]",
        "[pricing]",
        "[server]",
        "2 agents",
        "1 skill",
      ],
    });
    expect(await workspace.stillMatches()).toBe(false);
  });

  test("[C-231] [C-237] one notice names what was skipped and the command", async () => {
    const scenario = await makeScenario({ workspace: EXECUTABLE });
    const { notices } = await scenario.load({ trust: "stored" });
    expect(notices).toHaveLength(1);
    expect(notices[0]).toContain("[plugins]");
    expect(notices[0]).toContain("`cookie trust`");
  });

  test("[C-232] a workspace with harmless settings alone needs no trust and no notice", async () => {
    const scenario = await makeScenario({
      workspace: { "config.toml": "[budget]\nmax_turns = 3" },
    });
    const { config, notices, workspace } = await scenario.load({ trust: "stored" });
    expect(config.budget).toEqual({ maxTurns: 3 });
    expect(notices).toEqual([]);
    expect(workspace.ignored).toEqual([]);
  });

  test.for(["[plugins", "[unheard_of]", "[approval]\ntimeout_ms = 0"])(
    "[C-232] the file still has to be sound: %j",
    async (toml) => {
      const scenario = await makeScenario({ workspace: { "config.toml": toml } });
      expect(await scenario.failure({ trust: "stored" })).toMatchObject({ layer: "workspace" });
    },
  );
});

describe("trust", () => {
  const files = {
    "config.toml": '[plugins.good]\ncommand = "/good"',
    "agents/good.md": agent("good"),
  };

  test("[C-234] exactly the trusted content is loaded", async () => {
    const scenario = await makeScenario({ workspace: files });
    await trust(scenario);
    const { config, agents, notices, workspace } = await scenario.load({ trust: "stored" });
    expect(config.plugins).toMatchObject([{ name: "good", layer: "workspace" }]);
    expect(agents.get("good")).toMatchObject({ source: "workspace", description: "good" });
    expect(notices).toEqual([]);
    expect(workspace).toMatchObject({ state: "trusted", ignored: [] });
    expect(workspace.digest).toBe(await digestOf(scenario.layer));
  });

  test("[C-233] any change makes it untrusted until it is trusted again", async () => {
    const scenario = await makeScenario({ workspace: files });
    await trust(scenario);
    await writeFiles(scenario.layer, { "scripts/helper.sh": "rm -rf /" });
    const { config, notices, workspace } = await scenario.load({ trust: "stored" });
    expect(config.plugins).toEqual([]);
    expect(workspace.state).toBe("changed");
    expect(notices[0]).toContain("changed since it was trusted");
    expect(await workspace.stillMatches()).toBe(false);
    await trust(scenario);
    expect((await scenario.load({ trust: "stored" })).workspace.state).toBe("trusted");
  });

  test("[C-234] a change after the load is seen before the next program starts", async () => {
    const scenario = await makeScenario({ workspace: files });
    await trust(scenario);
    const { workspace } = await scenario.load({ trust: "stored" });
    expect(await workspace.stillMatches()).toBe(true);
    await writeFile(join(scenario.layer, "config.toml"), `${files["config.toml"]} # more`);
    expect(await workspace.stillMatches()).toBe(false);
  });

  test("[C-237] trust for this process stores nothing", async () => {
    const scenario = await makeScenario({ workspace: files });
    const { config, workspace } = await scenario.load({ trust: "this_process" });
    expect(config.plugins).toHaveLength(1);
    expect(workspace.state).toBe("trusted");
    expect(await readdir(scenario.root).catch(() => [])).toEqual([]);
    await rm(join(scenario.layer, "agents/good.md"));
    expect(await workspace.stillMatches()).toBe(false);
  });

  test("[C-234] a linked file is never loaded, for the digest does not cover its target", async () => {
    const scenario = await makeScenario({ workspace: { "other.toml": "[server]\nport = 1" } });
    await symlink(join(scenario.layer, "other.toml"), join(scenario.layer, "config.toml"));
    for (const trust of ["stored", "this_process"] as const) {
      expect(await scenario.failure({ trust })).toMatchObject({ code: "unsafe_path" });
    }
  });

  test("a linked agent document of a trusted workspace is refused", async () => {
    const scenario = await makeScenario({ workspace: { "agents/a.md": agent("a") } });
    await symlink("a.md", join(scenario.layer, "agents/b.md"));
    expect(await scenario.failure()).toMatchObject({ code: "unsafe_path" });
  });
});

describe("the digest", () => {
  test("[C-233] covers paths, kinds, executable bits, contents and the text of links", async () => {
    const { layer } = await makeScenario({ workspace: { a: "1", "b/c": "2" } });
    const digests = [await digestOf(layer)];
    const change = async (work: Promise<unknown>) => {
      await work;
      digests.push(await digestOf(layer));
    };
    await change(writeFile(join(layer, "a"), "3"));
    await change(chmod(join(layer, "a"), 0o755));
    await change(mkdir(join(layer, "empty")));
    await change(symlink("a", join(layer, "link")));
    await change(rm(join(layer, "link")).then(() => symlink("b", join(layer, "link"))));
    await change(
      rm(join(layer, "b"), { recursive: true }).then(() => writeFile(join(layer, "b"), "")),
    );
    expect(new Set(digests).size).toBe(digests.length);
    expect(await digestOf(layer)).toBe(digests.at(-1));
  });

  test("[C-233] bytes cannot be moved between a name and a content", async () => {
    const one = await makeScenario({ workspace: { ab: "c", d: "" } });
    const two = await makeScenario({ workspace: { a: "bc", d: "" } });
    expect(await digestOf(one.layer)).not.toBe(await digestOf(two.layer));
  });

  test("does not follow a link", async () => {
    const scenario = await makeScenario({ workspace: { a: "1" } });
    await writeFile(join(scenario.cwd, "outside"), "1");
    await symlink(join(scenario.cwd, "outside"), join(scenario.layer, "link"));
    const before = await digestOf(scenario.layer);
    await writeFile(join(scenario.cwd, "outside"), "2");
    expect(await digestOf(scenario.layer)).toBe(before);
  });

  test("[C-011] does not depend on the order of the directory", async () => {
    const names = ["b", "a", "ä", "\u{1f36a}", "\uff5e", "Z", "a-b", "a/b"];
    const one = await makeScenario({ workspace: byName(names) });
    const two = await makeScenario({ workspace: byName([...names].reverse()) });
    expect(await digestOf(one.layer)).toBe(await digestOf(two.layer));
  });

  test("over 64 MiB cannot be trusted, and the reason is said", async () => {
    const scenario = await makeScenario({
      workspace: { big: new Uint8Array(64 * 1024 * 1024 + 1), "agents/a.md": "x" },
    });
    const { workspace, notices } = await scenario.load({ trust: "this_process" });
    expect(workspace.state).toBe("untrusted");
    expect(notices[0]).toContain("67108864 bytes");
  });

  test("a pipe or a name that is not UTF-8 cannot be trusted", async () => {
    const scenario = await makeScenario({ workspace: { "agents/a.md": "x" } });
    const odd = Buffer.concat([Buffer.from(`${scenario.layer}/`), Buffer.of(0xff)]);
    await writeFile(odd, "");
    expect(await digestWorkspace(scenario.layer)).toMatchObject({ trustable: false });
    await rm(odd);
    makePipe(join(scenario.layer, "pipe"));
    expect(await digestWorkspace(scenario.layer)).toMatchObject({ trustable: false });
    const { notices } = await scenario.load({ trust: "this_process" });
    expect(notices[0]).toContain("cannot be trusted");
  });

  test("over 10,000 entries cannot be trusted", async () => {
    const scenario = await makeScenario({ workspace: { "many/first": "" } });
    const folder = join(scenario.layer, "many");
    // names of one file: as many folders take a slow disk a minute
    for (let n = 0; n < 10_000; n += 1) linkSync(join(folder, "first"), join(folder, String(n)));
    expect(await digestWorkspace(scenario.layer)).toEqual({
      trustable: false,
      reason: "it has over 10000 entries",
    });
  });
});

describe("the store", () => {
  const digest = "a".repeat(64);

  test("[C-235] [C-003] is made private, with one record per directory", async () => {
    const { root } = await makeScenario();
    await grantTrust({ root, directory: "/b", digest });
    await grantTrust({ root, directory: "/a", digest: "b".repeat(64) });
    await grantTrust({ root, directory: "/b", digest: "c".repeat(64) });
    expect(await listTrust(root)).toEqual([
      { directory: "/a", digest: "b".repeat(64), trustedAt: expect.any(String) as string },
      { directory: "/b", digest: "c".repeat(64), trustedAt: expect.any(String) as string },
    ]);
    expect((await stat(root)).mode & 0o777).toBe(0o700);
    expect((await stat(join(root, "trust.json"))).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(join(root, "trust.json"), "utf8"))).toMatchObject({
      schema_version: 1,
      workspaces: { "/a": { digest: "b".repeat(64) } },
    });
  });

  test("revoking takes one record away and says whether there was one", async () => {
    const { root } = await makeScenario();
    await grantTrust({ root, directory: "/a", digest });
    expect(await revokeTrust({ root, directory: "/a" })).toBe(true);
    expect(await revokeTrust({ root, directory: "/a" })).toBe(false);
    expect(await listTrust(root)).toEqual([]);
  });

  test("[C-235] changes made at once are all kept", async () => {
    const { root } = await makeScenario();
    const directories = Array.from({ length: 8 }, (_, index) => `/p${index}`);
    await Promise.all(directories.map((directory) => grantTrust({ root, directory, digest })));
    expect((await listTrust(root)).map(({ directory }) => directory)).toEqual(directories);
  });

  test.for([
    "",
    "{",
    "[]",
    '{"schema_version":2,"workspaces":{}}',
    '{"schema_version":1,"workspaces":{},"more":1}',
    '{"schema_version":1,"workspaces":{"/a":{"digest":"x","trusted_at":"now"}}}',
    " ".repeat(1024 * 1024 + 1),
  ])("[C-235] a malformed one trusts nothing, warns and is never overwritten", async (text) => {
    const scenario = await makeScenario({
      user: { "trust.json": text },
      workspace: { "agents/a.md": agent("a") },
    });
    const { workspace, notices } = await scenario.load({ trust: "stored" });
    expect(workspace.state).toBe("untrusted");
    expect(notices[0]).toContain(join(scenario.root, "trust.json"));
    expect((await readTrust(scenario.root)).records.size).toBe(0);
    await expect(trust(scenario)).rejects.toMatchObject({ code: "invalid_value" });
    expect(await readFile(join(scenario.root, "trust.json"), "utf8")).toBe(text);
  });
});

function byName(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.filter((name) => name !== "a" || !names.includes("a/b")).map((name) => [name, "x"]),
  );
}
