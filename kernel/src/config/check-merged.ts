import type { Config } from "./config.ts";
import { BUILTIN_PREFIX } from "./decode-plugin.ts";
import { DecodeProblem } from "./decode-problem.ts";
import { DEFAULT_PROFILE } from "./decode-tools.ts";
import type { FirstPartyFacts } from "./first-party.ts";
import type { KeyPath } from "./key-path.ts";
import { nearestName } from "./nearest-name.ts";
import type { PluginEntry } from "./plugin-entry.ts";

/** First-party entries adjust what exists, and do not switch off what the kernel needs (C-060). */
export function checkPluginEntry(
  { name, enabled }: PluginEntry,
  firstParty: readonly FirstPartyFacts[],
): void {
  if (!name.startsWith(BUILTIN_PREFIX)) return;
  const facts = firstParty.find(({ id }) => id === name);
  if (facts === undefined) {
    const ids = firstParty.map(({ id }) => id);
    throw problem("plugin_invalid", ["plugins", name], "no first-party plugin has this id", {
      nearest: nearestName(name, ids),
      advice: ids.length === 0 ? "remove it" : `there are ${ids.join(", ")}`,
    });
  }
  if (facts.required && !enabled) {
    throw problem("plugin_invalid", ["plugins", name, "enabled"], "this plugin is required", {
      advice: "remove it",
    });
  }
}

/** A project cannot put another program in the place of a guard that the user requires (E-204). */
export function checkReplacement({ name }: PluginEntry, replaced: PluginEntry | undefined): void {
  if (replaced?.required !== true) return;
  throw problem("plugin_invalid", ["plugins", name], "the user's configuration requires its own", {
    advice: "remove it or name it otherwise",
  });
}

/** Profile, tool names and plugins that `[tools]` speaks of exist (C-062, C-063, C-066). */
export function checkTools(config: Config, firstParty: readonly FirstPartyFacts[]): void {
  const { tools, plugins, mcp } = config;
  const declarations = firstParty.flatMap(({ manifest }) => manifest.tools ?? []);
  const profiles = new Set(declarations.flatMap(({ profile }) => profile ?? [DEFAULT_PROFILE]));
  if (tools.profile !== DEFAULT_PROFILE && !profiles.has(tools.profile)) {
    throw problem("runtime_invalid", ["tools", "profile"], "no such profile", {
      advice: `registered are ${[...profiles.add(DEFAULT_PROFILE)].sort().join(", ")}`,
    });
  }
  const names = new Set(declarations.map(({ name }) => name));
  // Tools that a server or plugin reports later have names nobody can know here.
  const closed = mcp.servers.size === 0 && plugins.every(({ launch }) => launch.kind === "builtin");
  for (const key of ["include", "exclude"] as const) {
    for (const [index, name] of tools[key].entries()) {
      if (!closed || name.includes("*") || names.has(name)) continue;
      throw problem("runtime_invalid", ["tools", key, index], "no such tool", {
        nearest: nearestName(name, names),
        advice: "remove it",
      });
    }
  }
  const enabled = enabledPlugins(plugins, firstParty);
  for (const [tool, plugin] of tools.implementations) {
    if (enabled.has(plugin)) continue;
    throw problem(
      "runtime_invalid",
      ["tools", "implementations", tool],
      "the plugin does not exist or is disabled",
      { nearest: nearestName(plugin, enabled), advice: "configure and enable it" },
    );
  }
}

function enabledPlugins(
  entries: readonly PluginEntry[],
  firstParty: readonly FirstPartyFacts[],
): Set<string> {
  const names = new Set(firstParty.map(({ id }) => id));
  for (const { name, enabled } of entries) {
    if (enabled) names.add(name);
    else names.delete(name);
  }
  return names;
}

function problem(
  code: "plugin_invalid" | "runtime_invalid",
  keyPath: KeyPath,
  text: string,
  { nearest, advice }: { nearest?: string | undefined; advice: string },
): DecodeProblem {
  return new DecodeProblem({
    code,
    keyPath,
    problem: text,
    advice: nearest === undefined ? advice : `did you mean ${nearest}?`,
  });
}
