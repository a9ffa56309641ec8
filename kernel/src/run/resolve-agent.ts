import { CookieError, type ModelSelection, type RunSelection } from "@cookie-agent/sdk/protocol";
import type { AgentDocument } from "../config/agent-document.ts";
import { DEFAULT_AGENT_ID, makeDefaultAgent } from "../config/built-in-agents.ts";
import type { ModelRuntime } from "../model/model-runtime.ts";

export interface AgentFacts {
  readonly agents: ReadonlyMap<string, AgentDocument>;
  readonly models: ModelRuntime;
}

/** The agent's chain as far as its models exist now, named variants resolved (S-127). */
export function availableChain(document: AgentDocument, models: ModelRuntime): ModelSelection[] {
  const chain: ModelSelection[] = [];
  for (const { model, variant } of document.models) {
    const selection = models.resolveVariant(model, variant);
    if (selection !== undefined && models.has(selection.model, selection.variant)) {
      chain.push(selection);
    }
  }
  return chain;
}

/** Enabled, `primary` or `all`, and at least one chain entry that can run (C 3.3). */
export function isRootRunnable(document: AgentDocument, models: ModelRuntime): boolean {
  return (
    document.enabled &&
    (document.mode === "primary" || document.mode === "all") &&
    availableChain(document, models).length > 0
  );
}

/** `primary` if it can run, else the first that can, else the built-in one if any model exists (C-088). */
export function defaultAgentId({ agents, models }: AgentFacts): string | null {
  const authored = firstRunnable({ agents, models });
  if (authored !== null) return authored;
  return models.firstAvailable() === undefined ? null : DEFAULT_AGENT_ID;
}

/**
 * The document behind a selection. The built-in `default` exists only while no authored agent can run as root,
 * and its chain is the selected model (C-090).
 */
export function resolveAgent(facts: AgentFacts, selection: RunSelection): AgentDocument {
  const authored = facts.agents.get(selection.agent);
  if (authored !== undefined) {
    if (!authored.enabled) {
      throw new CookieError("disabled_agent", `agent ${selection.agent} is disabled`);
    }
    if (authored.mode !== "primary" && authored.mode !== "all") {
      throw new CookieError(
        "ineligible_agent",
        `agent ${selection.agent} has mode ${authored.mode} and cannot start a session`,
      );
    }
    return authored;
  }
  if (selection.agent === DEFAULT_AGENT_ID && firstRunnable(facts) === null) {
    return makeDefaultAgent({
      models: [selection.model],
      delegateTargets: delegateTargets(facts.agents),
    });
  }
  throw new CookieError("ineligible_agent", `agent ${selection.agent} is not available`);
}

/**
 * The agent's chain and where the run begins in it: at the selected model, or at the first available one behind
 * its place. A selected model outside the authored chain is put in front (S-127).
 */
export function selectSuffix(
  document: AgentDocument,
  selected: ModelSelection,
  models: ModelRuntime,
): { chain: ModelSelection[]; suffixStart: number } {
  const chain = availableChain(document, models);
  const place = document.models.findIndex(({ model, variant }) => {
    const resolved = models.resolveVariant(model, variant);
    return resolved === undefined
      ? model === selected.model && (variant === null || variant === selected.variant)
      : isSameModel(resolved, selected);
  });
  if (place >= 0) {
    const before = { ...document, models: document.models.slice(0, place) };
    return { chain, suffixStart: availableChain(before, models).length };
  }
  if (!models.has(selected.model, selected.variant)) return { chain, suffixStart: 0 };
  return { chain: [selected, ...chain], suffixStart: 0 };
}

/**
 * What a next run uses when nobody chooses: the agent and model that worked last. An agent that can no longer run
 * gives way to the default agent, a model or variant that is gone to the agent's default model (S-128).
 */
export function recallSelection(facts: AgentFacts, used: RunSelection | null): RunSelection | null {
  const agent = used !== null && canRun(facts, used.agent) ? used.agent : defaultAgentId(facts);
  if (agent === null) return null;
  if (used?.agent === agent && facts.models.has(used.model.model, used.model.variant)) return used;
  const document = facts.agents.get(agent);
  const model =
    document === undefined
      ? facts.models.firstAvailable()
      : availableChain(document, facts.models)[0];
  return model === undefined ? null : { agent, model };
}

function canRun(facts: AgentFacts, agent: string): boolean {
  const document = facts.agents.get(agent);
  if (document !== undefined) return isRootRunnable(document, facts.models);
  return agent === DEFAULT_AGENT_ID && firstRunnable(facts) === null;
}

function isSameModel(a: ModelSelection, b: ModelSelection): boolean {
  return a.model === b.model && a.variant === b.variant;
}

function firstRunnable({ agents, models }: AgentFacts): string | null {
  const primary = agents.get("primary");
  if (primary && isRootRunnable(primary, models)) return primary.id;
  const runnable = [...agents.values()].filter((document) => isRootRunnable(document, models));
  return runnable.map((document) => document.id).sort()[0] ?? null;
}

function delegateTargets(agents: ReadonlyMap<string, AgentDocument>): string[] {
  return [...agents.values()]
    .filter(({ enabled, mode }) => enabled && (mode === "subagent" || mode === "all"))
    .map(({ id }) => id)
    .sort();
}
