import type { LoadedConfig } from "./load-config.ts";
import { ENTRY_DEFAULTS, type PluginEntry } from "./plugin-entry.ts";

type Config = LoadedConfig["config"];

/** A plugin folder that is tried without an entry of its own. */
export interface TriedPlugin {
  readonly name: string;
  /** Absolute. */
  readonly directory: string;
  /** Tools that it serves in place of whoever owns them. */
  readonly tools: readonly string[];
}

/** The configuration with this plugin in it, untrusted, in place of an entry of the same name. */
export function withTriedPlugin(config: Config, tried: TriedPlugin): Config {
  const entry: PluginEntry = {
    name: tried.name,
    layer: "user",
    launch: { kind: "path", directory: tried.directory },
    ...ENTRY_DEFAULTS,
  };
  const known = config.plugins.find(({ name }) => name === tried.name);
  const plugin =
    known === undefined
      ? entry
      : { ...entry, env: known.env, config: known.config, toolTimeoutMs: known.toolTimeoutMs };
  const bound = tried.tools.map((tool) => [tool, tried.name] as const);
  return {
    ...config,
    plugins: [...config.plugins.filter(({ name }) => name !== tried.name), plugin],
    tools: {
      ...config.tools,
      implementations: new Map([...config.tools.implementations, ...bound]),
    },
  };
}
