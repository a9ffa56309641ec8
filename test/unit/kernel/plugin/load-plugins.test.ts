import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Manifest } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { PluginEntry } from "../../../../kernel/src/config/plugin-entry.ts";
import { readManifestFile } from "../../../../kernel/src/plugin/load-manifest.ts";
import { loadPlugins } from "../../../../kernel/src/plugin/load-plugins.ts";
import { entryFor, manifestOf, tempDirectory } from "./open-host.ts";

async function directoryOf(manifest: Manifest): Promise<string> {
  const directory = await tempDirectory();
  await writeFile(join(directory, "cookie-plugin.json"), JSON.stringify(manifest));
  return directory;
}

async function loadEntry(more: Partial<PluginEntry>, manifest: Partial<Manifest> = {}) {
  const directory = await directoryOf(manifestOf(manifest));
  const { digest } = await readManifestFile(directory);
  const [plugin] = await loadPlugins({
    firstParty: [],
    entries: [
      entryFor("sample", { launch: { kind: "path", directory }, integrity: digest, ...more }),
    ],
    workspaceRoot: "/workspace",
  });
  return plugin;
}

async function loadShipped(manifest: Partial<Manifest>, entries: readonly PluginEntry[] = []) {
  const shipped = manifestOf({ name: "builtin.sample", ...manifest });
  const directory = await directoryOf(shipped);
  const [plugin] = await loadPlugins({
    firstParty: [{ id: shipped.name, directory, manifest: shipped }],
    entries,
    workspaceRoot: "/workspace",
  });
  return plugin;
}

const builtin = (more: Partial<PluginEntry>) =>
  entryFor("builtin.sample", { launch: { kind: "builtin" }, ...more });

describe("tiers", () => {
  test("[T-003] [E-112] only the composition root makes a plugin first-party", async () => {
    expect(await loadShipped({})).toMatchObject({ tier: "first_party", source: "bundled" });
    expect(await loadEntry({ name: "builtin.sample" }, { name: "builtin.sample" })).toMatchObject({
      tier: "untrusted",
      failure: { code: "invalid_declaration", data: { member: "name" } },
    });
  });

  test("[T-003] [E-112] a user entry is trusted with a matching digest, a workspace entry never", async () => {
    expect(await loadEntry({ trust: "trusted" })).toMatchObject({
      tier: "trusted",
      failure: null,
    });
    expect(await loadEntry({ trust: "trusted", layer: "workspace" })).toMatchObject({
      tier: "untrusted",
      source: "workspace",
    });
  });

  test("[E-112] a command without manifest is untrusted whatever its entry says", async () => {
    const launch = { kind: "command" as const, command: "x", args: [] };
    expect(await loadEntry({ trust: "trusted", launch })).toMatchObject({
      tier: "untrusted",
      manifest: null,
      activation: "startup",
    });
  });
});

describe("settings", () => {
  test("[E-041] an entry adjusts a shipped plugin and replaces nothing of it", async () => {
    const entry = builtin({ startupTimeoutMs: 5, config: { a: 1 }, enabled: false });
    expect(await loadShipped({}, [entry])).toMatchObject({
      tier: "first_party",
      enabled: false,
      startupTimeoutMs: 5,
      config: { a: 1 },
      launch: { kind: "own", command: process.execPath },
    });
  });

  test("an entry for a shipped plugin that does not exist fails by name", async () => {
    const [plugin] = await loadPlugins({
      firstParty: [],
      entries: [builtin({})],
      workspaceRoot: "/workspace",
    });
    expect(plugin?.failure?.message).toContain("builtin.sample");
  });

  test("defaults depend on the tier", async () => {
    expect(await loadShipped({})).toMatchObject({ maxInFlight: 64, restart: "on_demand" });
    expect(await loadEntry({})).toMatchObject({ maxInFlight: 8, restart: "never" });
    expect(await loadEntry({ trust: "trusted" })).toMatchObject({ restart: "on_demand" });
  });

  test.for<[Manifest["capabilities"], string]>([
    [undefined, "tool"],
    [{ intercept: ["message_end"] }, "session"],
    [{ subscribe_events: ["run_started"] }, "session"],
    [{ subscribe_events: [], subscribe_bus: false }, "tool"],
  ])(
    "without hooks and subscriptions a tool starts it, with them a session: %j",
    async ([capabilities, activation]) => {
      const manifest = capabilities === undefined ? {} : { capabilities };
      expect(await loadEntry({}, manifest)).toMatchObject({ activation });
    },
  );

  test("a package that is not installed fails and says what to do", async () => {
    const launch = { kind: "package" as const, directory: null, package: "absent" };
    const plugin = await loadEntry({ launch });
    expect(plugin?.failure?.message).toContain("not installed");
  });
});
