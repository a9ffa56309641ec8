import { isAbsolute, join } from "node:path";
import {
  CookieError,
  type Digest,
  isCookieError,
  type Manifest,
  type PermissionAction,
  type PluginRuntime,
  type Revision,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import type { FirstPartyFacts } from "../config/first-party.ts";
import { ENTRY_DEFAULTS, type PluginEntry } from "../config/plugin-entry.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { keptDelay } from "../support/deadline.ts";
import { sha256Hex } from "../support/digest.ts";
import { checkConfig, checkProtocol, parseManifest, readManifestFile } from "./load-manifest.ts";
import type { LaunchPlan, LoadedPlugin } from "./loaded-plugin.ts";
import { NO_CLAIMS, type TierClaims } from "./tier-claims.ts";
import { applyTier, type SlotActions, type TierSubject } from "./trust-tier.ts";

export interface LoadOptions {
  readonly firstParty: readonly FirstPartyFacts[];
  readonly entries: readonly PluginEntry[];
  readonly workspaceRoot: string;
}

const MAX_DIAGNOSTICS = 64;

/**
 * Everything known before a process runs, first-party plugins first, then entries in their order (E-042). One that
 * cannot be used is in the list with its `failure`; it never hinders the others (E-045).
 */
export async function loadPlugins(options: LoadOptions): Promise<LoadedPlugin[]> {
  const loaded = await Promise.all(
    pluginSources(options).map((source) => loadPlugin(source, options)),
  );
  return refuseUnequalGroups(loaded);
}

/** Where one plugin comes from: the composition root, an entry, or both. */
export interface PluginSource {
  readonly name: string;
  readonly facts: FirstPartyFacts | undefined;
  readonly entry: PluginEntry | undefined;
}

export function pluginSources(options: LoadOptions): PluginSource[] {
  const entries = new Map(options.entries.map((entry) => [entry.name, entry]));
  const shipped = options.firstParty.map((facts) => ({
    name: facts.id,
    facts,
    entry: entries.get(facts.id),
  }));
  const names = new Set(shipped.map(({ name }) => name));
  const others = options.entries
    .filter(({ name }) => !names.has(name))
    .map((entry) => ({ name: entry.name, facts: undefined, entry }));
  return [...shipped, ...others];
}

/** Reads one plugin anew; never rejects. */
export async function loadPlugin(
  source: PluginSource,
  options: Pick<LoadOptions, "firstParty" | "workspaceRoot">,
): Promise<LoadedPlugin> {
  const { facts, entry } = source;
  const tier = tierOf(source);
  const settings = { ...ENTRY_DEFAULTS, ...entry };
  const diagnostics: string[] = [];
  const diagnose = (text: string) => {
    if (diagnostics.length >= MAX_DIAGNOSTICS || diagnostics.includes(text)) return;
    diagnostics.push(text);
  };
  const subject: TierSubject = {
    name: source.name,
    tier,
    grants: new Set(tier === "trusted" ? settings.grants : []),
    toolTimeoutMs: keptDelay(settings.toolTimeoutMs),
    slotActions: slotActions(options.firstParty),
    diagnose,
  };
  let known: Known = { manifest: null, manifestDigest: null, launch: null, claims: NO_CLAIMS };
  let failure: CookieError | null = null;
  try {
    known =
      facts === undefined ? await loadEntry(source, subject) : await loadShipped(facts, subject);
    // Nothing to say to a shipped plugin means nothing to check, and no validator to load.
    const configured = facts === undefined || Object.keys(settings.config).length > 0;
    if (known.manifest !== null && configured) await checkConfig(known.manifest, settings.config);
  } catch (error) {
    failure = isCookieError(error)
      ? error
      : new CookieError("internal", `the plugin ${source.name} could not be loaded`, {
          cause: error,
        });
  }
  const { manifest } = known;
  return {
    name: source.name,
    tier,
    source: facts !== undefined ? "bundled" : (entry?.layer ?? "user"),
    enabled: settings.enabled,
    required: settings.required || facts?.required === true,
    ...known,
    ...(failure === null ? {} : { claims: NO_CLAIMS, launch: null }),
    failure,
    subject: { ...subject, implementation: implementationOf(tier, known) },
    activation: manifest === null ? "startup" : activationOf(manifest),
    prewarm: manifest?.prewarm ?? "stream",
    restart: manifest?.restart ?? (tier === "untrusted" ? "never" : "on_demand"),
    maxInFlight: manifest?.max_in_flight ?? (tier === "first_party" ? 64 : 8),
    idleMs: keptDelay(manifest?.idle_ms ?? 600_000),
    interceptionTimeoutMs: keptDelay(settings.interceptionTimeoutMs),
    startupTimeoutMs: keptDelay(settings.startupTimeoutMs),
    shutdownGraceMs: keptDelay(settings.shutdownGraceMs),
    config: settings.config,
    env: settings.env,
    cwd: entry?.cwd ?? options.workspaceRoot,
    diagnostics,
  };
}

interface Known {
  readonly manifest: Manifest | null;
  readonly manifestDigest: Revision | null;
  readonly launch: LaunchPlan | null;
  readonly claims: TierClaims;
}

async function loadShipped(facts: FirstPartyFacts, subject: TierSubject): Promise<Known> {
  const { manifest, directory } = facts;
  const { digest } = await readManifestFile(directory);
  checkProtocol(manifest);
  return {
    manifest,
    manifestDigest: digest,
    ...claimed(manifest, subject, digest, planLaunch(manifest.runtime, directory, subject.tier)),
  };
}

/** The claims of a manifest, each tool with what stands behind it. */
function claimed(
  manifest: Manifest,
  subject: TierSubject,
  manifestDigest: Revision,
  launch: LaunchPlan,
): Pick<Known, "claims" | "launch"> {
  const implementation = implementationOf(subject.tier, { manifestDigest, launch });
  return { launch, claims: applyTier(manifest, { ...subject, implementation }) };
}

/**
 * Tells one implementation from another that declares the same tool under the same name. A shipped plugin is its
 * manifest, whose version moves with the product; any other one is also the program that is started for it.
 */
function implementationOf(
  tier: TrustTier,
  { manifestDigest, launch }: Pick<Known, "manifestDigest" | "launch">,
): Digest {
  const program = tier === "first_party" ? null : launch;
  return sha256Hex(canonicalJson([tier, manifestDigest, program]));
}

async function loadEntry(source: PluginSource, subject: TierSubject): Promise<Known> {
  const { entry, name } = source;
  if (entry === undefined || entry.launch.kind === "builtin") {
    throw new CookieError("invalid_declaration", `no shipped plugin is called ${name}`);
  }
  if (entry.launch.kind === "command") {
    const { command, args } = entry.launch;
    const launch: LaunchPlan = { kind: "own", command, args, pinned: null };
    return { manifest: null, manifestDigest: null, launch, claims: NO_CLAIMS };
  }
  const { directory } = entry.launch;
  if (directory === null) {
    throw new CookieError(
      "invalid_declaration",
      `the package of the plugin ${name} is not installed; run \`cookie plugin add\``,
    );
  }
  const { bytes, digest } = await readManifestFile(directory);
  if (subject.tier === "trusted" && entry.integrity !== digest) {
    throw new CookieError(
      "integrity_mismatch",
      `the manifest of ${name} is ${digest}, the entry pins ${entry.integrity ?? "nothing"}; review the plugin, then update \`integrity\``,
    );
  }
  const manifest = await parseManifest(bytes, name, subject.tier);
  const launch = planLaunch(manifest.runtime, directory, subject.tier);
  return { manifest, manifestDigest: digest, ...claimed(manifest, subject, digest, launch) };
}

function planLaunch(runtime: PluginRuntime, directory: string, tier: TrustTier): LaunchPlan {
  const sha256 = tier === "untrusted" ? undefined : runtime.sha256;
  if (runtime.kind === "node") {
    const entry = join(directory, runtime.entry);
    if (runtime.group !== undefined) {
      return { kind: "shared", group: runtime.group, entry, sha256: sha256 ?? null };
    }
    const pinned = sha256 === undefined ? null : { file: entry, sha256 };
    return { kind: "own", command: process.execPath, args: [entry], pinned };
  }
  const isFile = /[/\\]/.test(runtime.command);
  const command =
    isFile && !isAbsolute(runtime.command) ? join(directory, runtime.command) : runtime.command;
  if (sha256 !== undefined && !isFile) {
    throw new CookieError(
      "invalid_declaration",
      "runtime.sha256: a command without a path cannot be pinned; name its file",
    );
  }
  const pinned = sha256 === undefined ? null : { file: command, sha256 };
  return { kind: "own", command, args: runtime.args ?? [], pinned };
}

function tierOf({ facts, entry }: PluginSource): TrustTier {
  if (facts !== undefined) return "first_party";
  const trusted = entry?.layer === "user" && entry.trust === "trusted";
  return trusted && entry.launch.kind !== "command" ? "trusted" : "untrusted";
}

function activationOf(manifest: Manifest): "startup" | "session" | "tool" {
  if (manifest.activation !== undefined) return manifest.activation;
  const { subscribe_events: events, subscribe_bus: bus, intercept } = manifest.capabilities ?? {};
  const listens = bus === true || (Array.isArray(events) ? events.length > 0 : events === true);
  return listens || (intercept ?? []).length > 0 ? "session" : "tool";
}

/** Members of a group share one environment, so the later one with another `env` fails (E-014). */
function refuseUnequalGroups(plugins: readonly LoadedPlugin[]): LoadedPlugin[] {
  const environments = new Map<string, string>();
  return plugins.map((plugin) => {
    if (plugin.launch?.kind !== "shared") return plugin;
    const env = canonicalJson(plugin.manifest?.env ?? {});
    const first = environments.get(plugin.launch.group);
    if (first === undefined) environments.set(plugin.launch.group, env);
    if (first === undefined || first === env) return plugin;
    return {
      ...plugin,
      claims: NO_CLAIMS,
      failure: new CookieError(
        "invalid_declaration",
        `env: differs from the other plugins of the group ${plugin.launch.group}`,
      ),
    };
  });
}

/** The actions of each shipped tool, which a replacement may use (E-073). */
export function slotActions(firstParty: readonly FirstPartyFacts[]): SlotActions {
  const slots = new Map<string, Set<PermissionAction>>();
  for (const tool of firstParty.flatMap(({ manifest }) => manifest.tools ?? [])) {
    const actions = slots.get(tool.name) ?? new Set();
    slots.set(tool.name, actions);
    const { prepare } = tool;
    if (prepare === undefined) actions.add("plugin");
    else if (prepare.mode === "dynamic") for (const action of prepare.actions) actions.add(action);
    else for (const { action } of prepare.resources) actions.add(action);
  }
  return slots;
}
