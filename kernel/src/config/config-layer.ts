import { join } from "node:path";
import { ConfigError, type ConfigLayer } from "./config-error.ts";
import { decodeMcp } from "./decode-mcp-server.ts";
import { decodePlugins } from "./decode-plugin.ts";
import { DecodeProblem } from "./decode-problem.ts";
import { decodeProviders } from "./decode-provider.ts";
import { decodeSettings, SETTINGS_TABLES, type Settings } from "./decode-settings.ts";
import type { Environment } from "./interpolate-env.ts";
import { formatKeyPath, type KeyPath } from "./key-path.ts";
import type { McpServerConfig } from "./mcp-server-config.ts";
import { type ConfigSource, checkTomlLimits, MAX_CONFIG_BYTES, parseToml } from "./parse-toml.ts";
import type { PluginEntry } from "./plugin-entry.ts";
import type { ProviderConfig } from "./provider-config.ts";
import { readConfigFile } from "./read-config-file.ts";
import { TableReader } from "./table-reader.ts";

export const FILE_NAME = "config.toml";
const TOP_LEVEL_KEYS = [...SETTINGS_TABLES, "providers", "mcp", "plugins"];

/** One `config.toml` after steps 1 to 5 of the load pipeline (C 2.2). */
export interface ParsedLayer {
  readonly source: ConfigSource;
  readonly document: TableReader;
}

/** What one layer says, before anything is merged. */
export interface DecodedLayer {
  readonly source: ConfigSource;
  readonly settings: Partial<Settings>;
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly mcpServers: ReadonlyMap<string, McpServerConfig>;
  readonly plugins: ReadonlyMap<string, PluginEntry>;
}

/** Reads the file of a layer; undefined when it has none (C-017). */
export function readLayerFile(
  layer: ConfigLayer,
  directory: string,
): Promise<Uint8Array | undefined> {
  const path = join(directory, FILE_NAME);
  return readConfigFile({ layer, path, maxBytes: MAX_CONFIG_BYTES });
}

/** Steps 1 to 5: size, encoding, TOML, limits, top-level keys. */
export async function parseLayer(
  layer: ConfigLayer,
  directory: string,
  bytes: Uint8Array,
): Promise<ParsedLayer> {
  const path = join(directory, FILE_NAME);
  if (bytes.length > MAX_CONFIG_BYTES) throw tooLarge(layer, path);
  const { source, table } = await parseToml({ layer, path, directory }, bytes);
  return placeProblems(source, () => {
    checkTomlLimits(table);
    return { source, document: new TableReader(table, [], TOP_LEVEL_KEYS) };
  });
}

/** Steps 6 and 7: everything in the layer is decoded, disabled entries too (C-029). */
export async function decodeLayer(
  { source, document }: ParsedLayer,
  env: Environment,
): Promise<DecodedLayer> {
  const layer = await placeProblems(source, () => ({
    source,
    settings: decodeSettings(document),
    providers: document.has("providers")
      ? decodeProviders(document.value("providers"), env)
      : new Map<string, ProviderConfig>(),
    mcpServers: document.has("mcp")
      ? decodeMcp(document.value("mcp"), source.layer === "user" ? "user_file" : "workspace_file")
      : new Map<string, McpServerConfig>(),
    plugins: document.has("plugins")
      ? decodePlugins(document.value("plugins"), source.layer, source.directory)
      : new Map<string, PluginEntry>(),
  }));
  return {
    ...layer,
    mcpServers: await inAuthoredOrder(layer.mcpServers, source, ["mcp", "servers"]),
    plugins: await inAuthoredOrder(layer.plugins, source, ["plugins"]),
  };
}

/** Turns a broken rule into an error that says where in the file it is. */
export async function placeProblems<T>(source: ConfigSource, work: () => T): Promise<T> {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof DecodeProblem)) throw error;
    const { locateKey } = await import("./locate-key.ts");
    const place = await locateKey(source.text, error.keyPath);
    throw new ConfigError({
      code: error.code,
      layer: source.layer,
      path: source.path,
      key: error.keyPath.length === 0 ? undefined : formatKeyPath(error.keyPath),
      line: place?.line,
      column: place?.column,
      problem: error.problem,
      advice: error.advice,
    });
  }
}

async function inAuthoredOrder<T>(
  entries: ReadonlyMap<string, T>,
  source: ConfigSource,
  table: KeyPath,
): Promise<ReadonlyMap<string, T>> {
  if (entries.size < 2 || ![...entries.keys()].some((name) => /^[0-9]+$/.test(name))) {
    return entries;
  }
  const { authoredOrder } = await import("./locate-key.ts");
  const ordered = new Map<string, T>();
  for (const name of [...(await authoredOrder(source.text, table)), ...entries.keys()]) {
    const entry = entries.get(name);
    if (entry !== undefined) ordered.set(name, entry);
  }
  return ordered;
}

function tooLarge(layer: ConfigLayer, path: string): ConfigError {
  return new ConfigError({
    code: "too_large",
    layer,
    path,
    problem: `over ${MAX_CONFIG_BYTES} bytes`,
    advice: "shorten it",
  });
}
