import type {
  AvailabilityPredicate,
  JsonObject,
  PermissionAction,
  TrustTier,
} from "@cookie-agent/sdk/protocol";
import type { ToolsConfig } from "../config/config.ts";
import { DEFAULT_PROFILE } from "../config/decode-tools.ts";
import type { Policy } from "../permission/compile-rules.ts";
import { isToolVisible } from "../permission/evaluate-policy.ts";
import { matchPattern } from "../permission/match-pattern.ts";
import type { PluginFacts, ResolvedTool } from "../plugin/plugin-facts.ts";
import { ClaimedTools, type Resolver } from "./claimed-tools.ts";
import { closeParameters } from "./close-parameters.ts";
import { fitSlot } from "./slot-contract.ts";

/** A tool name with the implementation that serves it. */
export interface BoundTool {
  readonly name: string;
  readonly plugin: string;
  readonly tier: TrustTier;
  readonly tool: ResolvedTool;
  /** What the model is told, and what its arguments are checked against. */
  readonly spec: ToolSpec;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

/** A bound tool as lists show it. */
export interface ToolEntry extends BoundTool {
  readonly action: PermissionAction;
  /** Plugins that declare the name too and do not serve it. */
  readonly shadowed: readonly string[];
  readonly warmsWithRun: boolean;
}

/** The tools of one run, fixed when it is admitted (E-074). */
export interface ToolSet {
  /** Sorted by name (T-007). */
  readonly specs: readonly ToolSpec[];
  get(name: string): BoundTool | undefined;
  pluginOf(name: string): string | undefined;
  /**
   * Asks the plugin that claimed an unlisted name for its tool, once per run; from then on `get` knows it (E-133).
   * Undefined: nobody claims the name, or this run may not see the tool.
   */
  resolve(name: string, plugins: Resolver, signal: AbortSignal): Promise<BoundTool | undefined>;
  /** Plugins that start with the run's first model request (E-057). */
  readonly warmWithRun: readonly string[];
  /** The name exists in the profile, whether or not this run may use it. */
  isKnown(name: string): boolean;
}

/** A plugin that was chosen for a tool and cannot serve it. */
export interface UnfitBinding {
  readonly plugin: string;
  readonly problem: string;
}

export interface SlotTable {
  entries(): readonly ToolEntry[];
  /** Bindings that leave their tool unavailable, one sentence each. */
  readonly unfit: readonly UnfitBinding[];
  /** The plugin that serves a name. */
  ownerOf(name: string): string | undefined;
  /**
   * The tools that a run may see: its model calls tools, its policy has an allow or ask rule for the action (E-076)
   * and every predicate of the declaration holds.
   */
  freeze(run: {
    policy: Policy;
    toolCalling: boolean;
    available?: ReadonlySet<AvailabilityPredicate>;
    /** Fills in what a shipped description leaves open (E-036). */
    describe?: (description: string) => string;
  }): ToolSet;
}

/** One plugin's declaration of a name. */
interface Candidate {
  readonly facts: PluginFacts;
  readonly tool: ResolvedTool;
  /** Listed by the running process. */
  readonly dynamic: boolean;
}

/**
 * Decides who serves each tool name of the active profile (E-071): an explicit binding, then the first-party
 * declaration in a manifest, then the MCP bridge's dynamic tool, then the plugin that comes last in configuration order.
 * `plugins` are first-party first.
 */
export function buildSlotTable({
  plugins,
  tools,
}: {
  plugins: readonly PluginFacts[];
  tools: ToolsConfig;
}): SlotTable {
  const unfit: UnfitBinding[] = [];
  const entries: ToolEntry[] = [];
  const groups = groupByName(plugins, tools);
  for (const [name, candidates] of groups) {
    const winner = chooseOwner(name, candidates, tools, unfit);
    if (winner === undefined || isHeld(name, winner, plugins, tools, unfit)) continue;
    const shadowed = candidates.filter(({ facts }) => facts.name !== winner.facts.name);
    entries.push(toEntry(winner, shadowed));
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  const owners = new Map(entries.map(({ name, plugin }) => [name, plugin]));
  return {
    entries: () => entries,
    unfit,
    ownerOf: (name) => owners.get(name),
    freeze: (run) => {
      const claims = claimsInOrder(plugins, (name) => !groups.has(name) && isSelected(name, tools));
      return freezeTools(entries, claims, run);
    },
  };
}

function groupByName(
  plugins: readonly PluginFacts[],
  tools: ToolsConfig,
): Map<string, Candidate[]> {
  const groups = new Map<string, Candidate[]>();
  const add = (facts: PluginFacts, tool: ResolvedTool, dynamic: boolean) => {
    const { name } = tool.declaration;
    if (!isSelected(name, tools)) return;
    const group = groups.get(name) ?? [];
    group.push({ facts, tool, dynamic });
    groups.set(name, group);
  };
  for (const facts of plugins) {
    for (const tool of facts.tools) {
      if (isInProfile(facts, tool, tools.profile)) add(facts, tool, false);
    }
    for (const tool of facts.dynamic?.tools ?? []) add(facts, tool, true);
  }
  for (const name of plugins.flatMap(({ held }) => held ?? [])) {
    if (!groups.has(name) && isSelected(name, tools)) groups.set(name, []);
  }
  // A binding to a plugin that does not declare the tool must not fall back silently.
  for (const name of tools.implementations.keys()) {
    if (!groups.has(name) && isSelected(name, tools)) groups.set(name, []);
  }
  return groups;
}

function chooseOwner(
  name: string,
  candidates: readonly Candidate[],
  tools: ToolsConfig,
  unfit: UnfitBinding[],
): Candidate | undefined {
  const firstParty = candidates.find(
    ({ facts, dynamic }) => facts.tier === "first_party" && !dynamic,
  );
  const bound = tools.implementations.get(name);
  if (bound === undefined) {
    const bridged = candidates.find(({ facts, dynamic }) => dynamic && isBridge(facts));
    return firstParty ?? bridged ?? candidates.at(-1);
  }
  const replacement = candidates.find(({ facts }) => facts.name === bound);
  if (replacement === undefined) {
    unfit.push({
      plugin: bound,
      problem: `${name} is bound to plugin ${bound}, which does not declare it; it is unavailable`,
    });
    return undefined;
  }
  if (firstParty === undefined || firstParty === replacement) return replacement;
  const fit = fitSlot(firstParty.tool, replacement.tool, replacement.facts.tier);
  if (!("problem" in fit)) return { ...replacement, tool: fit };
  unfit.push({
    plugin: bound,
    problem: `${name} cannot be served by plugin ${bound}: ${fit.problem}; it is unavailable`,
  });
  return undefined;
}

/** A plugin whose reload failed would serve the name; nobody does so in its place without having been chosen (B136). */
function isHeld(
  name: string,
  winner: Candidate,
  plugins: readonly PluginFacts[],
  tools: ToolsConfig,
  unfit: UnfitBinding[],
): boolean {
  const holder = plugins.findLast(({ held }) => held?.includes(name) === true);
  if (holder === undefined || tools.implementations.get(name) === winner.facts.name) return false;
  const isOutranked =
    holder.tier !== "first_party" &&
    (winner.facts.tier === "first_party" ||
      plugins.indexOf(winner.facts) > plugins.indexOf(holder));
  if (isOutranked) return false;
  unfit.push({
    plugin: holder.name,
    problem: `${name} is unavailable until plugin ${holder.name} works again; it does not fall back to plugin ${winner.facts.name}`,
  });
  return true;
}

function toEntry(
  { facts, tool }: Pick<Candidate, "facts" | "tool">,
  shadowed: readonly Candidate[],
): ToolEntry {
  const { name, description, parameters } = tool.declaration;
  return {
    name,
    plugin: facts.name,
    tier: facts.tier,
    tool,
    spec: { name, description, parameters: closeParameters(parameters) },
    action: primaryAction(tool),
    shadowed: shadowed.map((loser) => loser.facts.name),
    warmsWithRun: facts.warmsWithRun === true,
  };
}

/** The MCP bridge's claims go first, then the others as their tools do: the last plugin wins (E-071). */
function claimsInOrder(
  plugins: readonly PluginFacts[],
  isFree: (name: string) => boolean,
): (name: string) => PluginFacts | undefined {
  const claiming = plugins.filter(({ dynamic }) => (dynamic?.prefixes.length ?? 0) > 0);
  const ordered = [
    ...claiming.filter(isBridge),
    ...claiming.filter((facts) => !isBridge(facts)).reverse(),
  ];
  const prefixes = ordered.flatMap((facts) =>
    (facts.dynamic?.prefixes ?? []).map((prefix) => ({ facts, prefix })),
  );
  return (name) =>
    isFree(name) ? prefixes.find(({ prefix }) => name.startsWith(prefix))?.facts : undefined;
}

function isBridge({ tier, provides }: PluginFacts): boolean {
  return tier === "first_party" && provides?.includes("mcp") === true;
}

function freezeTools(
  entries: readonly ToolEntry[],
  claimantOf: (name: string) => PluginFacts | undefined,
  run: Parameters<SlotTable["freeze"]>[0],
): ToolSet {
  const visible = entries
    .filter((entry) => run.toolCalling && isOffered(entry, run))
    .map((entry) => (entry.tier === "first_party" ? describedEntry(entry, run.describe) : entry));
  const byName = new Map(visible.map((entry) => [entry.name, entry]));
  const known = new Set(entries.map(({ name }) => name));
  const claimed = new ClaimedTools(claimantOf, (facts, tool) => {
    const entry = toEntry({ facts, tool }, []);
    return run.toolCalling && isOffered(entry, run) ? entry : undefined;
  });
  const get = (name: string) => byName.get(name) ?? claimed.get(name);
  return {
    specs: visible.map(({ spec }) => spec),
    warmWithRun: [
      ...new Set(visible.filter((entry) => entry.warmsWithRun).map((entry) => entry.plugin)),
    ],
    get,
    pluginOf: (name) => get(name)?.plugin,
    resolve: (name, plugins, signal) => claimed.resolve(name, plugins, signal),
    isKnown: (name) => known.has(name),
  };
}

function describedEntry(entry: ToolEntry, describe?: (text: string) => string): ToolEntry {
  const { spec } = entry;
  if (describe === undefined || !spec.description.includes("{{")) return entry;
  return { ...entry, spec: { ...spec, description: describe(spec.description) } };
}

function isOffered(entry: ToolEntry, run: Parameters<SlotTable["freeze"]>[0]): boolean {
  const { permission_name: permissionName, available_when: predicates } = entry.tool.declaration;
  return (
    (predicates ?? []).every((predicate) => run.available?.has(predicate) === true) &&
    isToolVisible(run.policy, { action: entry.action, permissionName })
  );
}

function primaryAction({ prepare }: ResolvedTool): PermissionAction {
  const action = prepare.mode === "static" ? prepare.resources[0]?.action : prepare.actions[0];
  return action ?? "plugin";
}

/** A first-party tool without `profile` belongs to the default one, any other tool to every profile (E-201). */
function isInProfile(facts: PluginFacts, tool: ResolvedTool, profile: string): boolean {
  // What introduces itself cannot know which profiles there are.
  if (facts.manifestDigest === null && facts.tier !== "first_party") return true;
  const declared = tool.declaration.profile;
  if (declared !== undefined) return declared.includes(profile);
  return facts.tier !== "first_party" || profile === DEFAULT_PROFILE;
}

function isSelected(name: string, { include, exclude }: ToolsConfig): boolean {
  const matches = (pattern: string) => matchPattern(pattern, name);
  return !exclude.some(matches) && (include.length === 0 || include.some(matches));
}
