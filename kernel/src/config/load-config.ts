import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { AgentDocument } from "./agent-document.ts";
import { checkPluginEntry, checkReplacement, checkTools } from "./check-merged.ts";
import type { Config } from "./config.ts";
import { ConfigError } from "./config-error.ts";
import {
  type DecodedLayer,
  decodeLayer,
  FILE_NAME,
  type ParsedLayer,
  parseLayer,
  placeProblems,
  readLayerFile,
} from "./config-layer.ts";
import type { FirstPartyFacts } from "./first-party.ts";
import type { Environment } from "./interpolate-env.ts";
import { loadAgents, readUserAgents, workspaceAgents } from "./load-agents.ts";
import { mergeLayers } from "./merge-layers.ts";
import { TableReader } from "./table-reader.ts";
import {
  countIgnored,
  GATED_TABLES,
  type InspectedWorkspace,
  ignoredNotice,
  inspectWorkspace,
  type WorkspaceTrust,
  workspaceTrust,
} from "./workspace-trust.ts";

export type { FirstPartyFacts } from "./first-party.ts";

export interface LoadConfigOptions {
  readonly homeDir: string;
  /** Canonical; also the workspace root. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly firstParty: readonly FirstPartyFacts[];
  /** `this_process` trusts what is found now and stores nothing. */
  readonly trust: "stored" | "this_process";
}

export interface LoadedConfig {
  /** `<home>/.cookie-agent`. */
  readonly root: string;
  readonly config: Config;
  /** Authored ones and `explore`, sorted by id; `default` is made at resolution. */
  readonly agents: ReadonlyMap<string, AgentDocument>;
  readonly workspace: WorkspaceTrust;
  /** One line each, for stderr. */
  readonly notices: readonly string[];
  /** Environment names read into provider secrets; no child process inherits them (E-046). */
  readonly secretEnvNames: ReadonlySet<string>;
}

/**
 * Reads both layers once and checks everything in them (C 2, 3). The first problem rejects with `ConfigError`.
 * Nothing is ever written.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  if (options.homeDir === "") {
    throw new ConfigError({
      code: "not_found",
      layer: "user",
      path: "~/.cookie-agent",
      problem: "there is no home directory",
      advice: "set HOME",
    });
  }
  const root = join(options.homeDir, ".cookie-agent");
  await insistOnDirectory(root);
  const inspected = await inspectWorkspace({ root, cwd: options.cwd, trust: options.trust });
  const env: Environment = { values: options.env, secretNames: new Set() };
  const user = await loadUserLayer(root, env);
  const { layer, ignored } = await loadWorkspaceLayer(inspected, env);
  const config = mergeLayers(user, layer);
  await checkMerged(config, { user, workspace: layer }, options.firstParty);
  const agents = await loadAgents([
    ...(await readUserAgents(root)),
    ...(inspected.content === undefined
      ? []
      : workspaceAgents(inspected.layerDirectory, inspected.content)),
  ]);
  return {
    root,
    config,
    agents,
    workspace: workspaceTrust(options.cwd, inspected, ignored),
    notices: [inspected.warning, ignoredNotice(inspected, ignored)].filter(
      (notice) => notice !== undefined,
    ),
    secretEnvNames: env.secretNames,
  };
}

async function loadUserLayer(root: string, env: Environment): Promise<DecodedLayer | undefined> {
  const bytes = await readLayerFile("user", root);
  return bytes === undefined ? undefined : decodeLayer(await parseLayer("user", root, bytes), env);
}

async function loadWorkspaceLayer(
  { layerDirectory, state, content }: InspectedWorkspace,
  env: Environment,
): Promise<{ layer?: DecodedLayer; ignored: readonly string[] }> {
  if (state === "absent") return { ignored: [] };
  // Of a trusted workspace the hashed bytes are loaded; a link there falls through to be refused.
  const bytes =
    content?.get(FILE_NAME)?.bytes ??
    (content !== undefined && !content.has(FILE_NAME)
      ? undefined
      : await readLayerFile("workspace", layerDirectory));
  const parsed =
    bytes === undefined ? undefined : await parseLayer("workspace", layerDirectory, bytes);
  if (state === "trusted") {
    return { ...(parsed && { layer: await decodeLayer(parsed, env) }), ignored: [] };
  }
  const tables = GATED_TABLES.filter((table) => parsed?.document.has(table));
  return {
    ...(parsed && { layer: await decodeLayer(withoutTables(parsed, tables), env) }),
    ignored: [...tables.map((table) => `[${table}]`), ...(await countIgnored(layerDirectory))],
  };
}

function withoutTables({ source, document }: ParsedLayer, tables: readonly string[]): ParsedLayer {
  const kept = new Map<string, unknown>();
  for (const key of document.keys()) {
    if (!tables.includes(key)) kept.set(key, document.value(key));
  }
  return { source, document: new TableReader(kept, []) };
}

/** Step 8; each problem is placed in the file of the layer that brought the entry. */
async function checkMerged(
  config: Config,
  { user, workspace }: { user: DecodedLayer | undefined; workspace: DecodedLayer | undefined },
  firstParty: readonly FirstPartyFacts[],
): Promise<void> {
  for (const entry of config.plugins) {
    const owner = entry.layer === "user" ? user : workspace;
    if (owner !== undefined) {
      await placeProblems(owner.source, () => {
        checkPluginEntry(entry, firstParty);
        if (entry.layer === "workspace") checkReplacement(entry, user?.plugins.get(entry.name));
      });
    }
  }
  const owner = workspace?.settings.tools === undefined ? user : workspace;
  if (owner?.settings.tools !== undefined) {
    await placeProblems(owner.source, () => checkTools(config, firstParty));
  }
}

async function insistOnDirectory(root: string): Promise<void> {
  const facts = await stat(root).catch(() => undefined);
  if (facts === undefined || facts.isDirectory()) return;
  throw new ConfigError({
    code: "unsafe_path",
    layer: "user",
    path: root,
    problem: "is not a directory",
    advice: "put a directory in its place",
  });
}
