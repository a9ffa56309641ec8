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
}

/** The tools of one run, fixed when it is admitted (E-074). */
export interface ToolSet {
  /** Sorted by name (T-007). */
  readonly specs: readonly ToolSpec[];
  get(name: string): BoundTool | undefined;
  pluginOf(name: string): string | undefined;
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
  /**
   * The tools that a run may see: its model calls tools, its policy has an allow or ask rule for the action (E-076)
   * and every predicate of the declaration holds.
   */
  freeze(run: {
    policy: Policy;
    toolCalling: boolean;
    available?: ReadonlySet<AvailabilityPredicate>;
  }): ToolSet;
}

/** One plugin's declaration of a name. */
interface Candidate {
  readonly facts: PluginFacts;
  readonly tool: ResolvedTool;
}

/**
 * Decides who serves each tool name of the active profile (E-071): an explicit binding, then the first-party
 * declaration, then the plugin that comes last in configuration order. `plugins` are first-party first.
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
  for (const [name, candidates] of groupByName(plugins, tools)) {
    const winner = chooseOwner(name, candidates, tools, unfit);
    if (winner === undefined) continue;
    const shadowed = candidates.filter(({ facts }) => facts.name !== winner.facts.name);
    entries.push(toEntry(winner, shadowed));
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    entries: () => entries,
    unfit,
    freeze: (run) => freezeTools(entries, run),
  };
}

function groupByName(
  plugins: readonly PluginFacts[],
  tools: ToolsConfig,
): Map<string, Candidate[]> {
  const groups = new Map<string, Candidate[]>();
  for (const facts of plugins) {
    for (const tool of facts.tools) {
      const { name } = tool.declaration;
      if (!isInProfile(facts, tool, tools.profile) || !isSelected(name, tools)) continue;
      const group = groups.get(name) ?? [];
      group.push({ facts, tool });
      groups.set(name, group);
    }
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
  const firstParty = candidates.find(({ facts }) => facts.tier === "first_party");
  const bound = tools.implementations.get(name);
  if (bound === undefined) return firstParty ?? candidates.at(-1);
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
  if (!("problem" in fit)) return { facts: replacement.facts, tool: fit };
  unfit.push({
    plugin: bound,
    problem: `${name} cannot be served by plugin ${bound}: ${fit.problem}; it is unavailable`,
  });
  return undefined;
}

function toEntry({ facts, tool }: Candidate, shadowed: readonly Candidate[]): ToolEntry {
  const { name, description, parameters } = tool.declaration;
  return {
    name,
    plugin: facts.name,
    tier: facts.tier,
    tool,
    spec: { name, description, parameters: closeParameters(parameters) },
    action: primaryAction(tool),
    shadowed: shadowed.map((loser) => loser.facts.name),
  };
}

function freezeTools(
  entries: readonly ToolEntry[],
  run: Parameters<SlotTable["freeze"]>[0],
): ToolSet {
  const visible = entries.filter((entry) => run.toolCalling && isOffered(entry, run));
  const byName = new Map(visible.map((entry) => [entry.name, entry]));
  const known = new Set(entries.map(({ name }) => name));
  return {
    specs: visible.map(({ spec }) => spec),
    get: (name) => byName.get(name),
    pluginOf: (name) => byName.get(name)?.plugin,
    isKnown: (name) => known.has(name),
  };
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
  const declared = tool.declaration.profile;
  if (declared !== undefined) return declared.includes(profile);
  return facts.tier !== "first_party" || profile === DEFAULT_PROFILE;
}

function isSelected(name: string, { include, exclude }: ToolsConfig): boolean {
  const matches = (pattern: string) => matchPattern(pattern, name);
  return !exclude.some(matches) && (include.length === 0 || include.some(matches));
}
