import {
  CookieError,
  type ModelEntry,
  type ModelSelection,
  type RunSelection,
  type RuntimeSnapshot,
} from "@cookie-agent/sdk/protocol";

export interface SelectionFlags {
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly variant?: string | undefined;
}

/** The built-in agent that stands in where no authored one can run. */
const BUILT_IN_AGENT = "default";
/** Names that an error lists at most. */
const MAX_CHOICES = 12;

/**
 * The agent and model of a run, checked against one snapshot before any session exists (C 7.3). A resumed
 * session's own selection counts where no flag says otherwise and it can still be had.
 */
export function selectRun(
  snapshot: RuntimeSnapshot,
  flags: SelectionFlags,
  resumed: RunSelection | null,
): RunSelection {
  const model = flaggedModel(snapshot, flags) ?? resumedModel(snapshot, flags, resumed);
  const agent = selectAgent(snapshot, flags.agent, resumed?.agent, model !== null);
  return { agent, model: model ?? chainModel(snapshot, agent, flags.variant) };
}

function selectAgent(
  snapshot: RuntimeSnapshot,
  flagged: string | undefined,
  resumed: string | undefined,
  modelSelected: boolean,
): string {
  const standIn = snapshot.default_agent ?? (modelSelected ? BUILT_IN_AGENT : null);
  const runnable = (id: string | undefined): id is string =>
    id !== undefined &&
    (id === standIn ||
      snapshot.agents.some(
        (agent) =>
          agent.id === id &&
          agent.enabled &&
          (agent.mode === "primary" || agent.mode === "all") &&
          (modelSelected || agent.resolved_fallback.length > 0),
      ));
  if (flagged !== undefined) {
    if (runnable(flagged)) return flagged;
    const agents = new Set([...snapshot.agents.map(({ id }) => id), standIn ?? BUILT_IN_AGENT]);
    throw unavailable(`agent ${flagged}`, "agents", [...agents].filter(runnable).sort());
  }
  if (runnable(resumed)) return resumed;
  if (standIn !== null) return standIn;
  throw new CookieError(
    "no_runnable_model",
    "no model is configured; add a provider to ~/.cookie-agent/config.toml, or try the offline model with -m offline/script",
  );
}

function flaggedModel(snapshot: RuntimeSnapshot, flags: SelectionFlags): ModelSelection | null {
  if (flags.model === undefined) return null;
  const entry = findModel(snapshot, flags.model);
  return { model: entry.key, variant: selectVariant(entry, flags.variant) };
}

function resumedModel(
  snapshot: RuntimeSnapshot,
  flags: SelectionFlags,
  resumed: RunSelection | null,
): ModelSelection | null {
  const entry = snapshot.models.find(({ key }) => key === resumed?.model.model);
  if (resumed === null || entry === undefined || !entry.available) return null;
  if (flags.variant !== undefined) {
    return { model: entry.key, variant: selectVariant(entry, flags.variant) };
  }
  const { variant } = resumed.model;
  const known = variant === null || entry.variants.includes(variant);
  return { model: entry.key, variant: known ? variant : entry.default_variant };
}

function chainModel(
  snapshot: RuntimeSnapshot,
  agent: string,
  variant: string | undefined,
): ModelSelection {
  const chain = snapshot.agents.find(({ id }) => id === agent)?.resolved_fallback ?? [];
  const first = chain[0] ?? firstAvailable(snapshot);
  if (first === undefined)
    throw unavailable(`a model for agent ${agent}`, "models", keys(snapshot));
  if (variant === undefined) return first;
  return {
    model: first.model,
    variant: selectVariant(findModel(snapshot, first.model), variant),
  };
}

function firstAvailable(snapshot: RuntimeSnapshot): ModelSelection | undefined {
  const entry = snapshot.models.find(({ available, offline }) => available && !offline);
  return entry === undefined ? undefined : { model: entry.key, variant: entry.default_variant };
}

function findModel(snapshot: RuntimeSnapshot, key: string): ModelEntry {
  const entry = snapshot.models.find((model) => model.key === key);
  if (entry === undefined || !entry.available) {
    throw unavailable(`model ${key}`, "models", keys(snapshot));
  }
  return entry;
}

function selectVariant(entry: ModelEntry, wanted: string | undefined): string | null {
  if (wanted === undefined) return entry.default_variant;
  if (wanted === "base") return null;
  if (entry.variants.includes(wanted)) return wanted;
  throw unavailable(`variant ${wanted} of model ${entry.key}`, "variants", [
    "base",
    ...entry.variants,
  ]);
}

/** Keys of the models that can be had. */
function keys(snapshot: RuntimeSnapshot): string[] {
  return snapshot.models.filter(({ available }) => available).map(({ key }) => key);
}

/** Says what can be had instead, cut short where that is a long list. */
function unavailable(what: string, kind: string, choices: readonly string[]): CookieError {
  const more = choices.length > MAX_CHOICES ? ", …" : "";
  const listed = choices.slice(0, MAX_CHOICES).join(", ");
  const advice =
    choices.length === 0
      ? `there are no ${kind} that can run`
      : `available ${kind}: ${listed}${more}`;
  return new CookieError("unavailable", `${what} is not available; ${advice}`);
}
