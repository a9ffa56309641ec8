import type { ModelEntry, RunSelection, RuntimeSnapshot } from "@cookie-agent/sdk/protocol";
import { ExitCode, ExitError } from "../exit-code.ts";

export interface SelectionFlags {
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
  readonly variant?: string | undefined;
}

/**
 * The agent and model of a run, checked against one snapshot before any session exists (C 7.3). A resumed
 * session's own selection counts where no flag says otherwise and its model is still there.
 */
export function selectRun(
  snapshot: RuntimeSnapshot,
  flags: SelectionFlags,
  resumed: RunSelection | null,
): RunSelection {
  const model = selectModel(snapshot, flags, resumed);
  return {
    agent: selectAgent(snapshot, flags.agent ?? resumed?.agent, model !== null),
    model: model ?? chainModel(snapshot, flags, resumed),
  };
}

function selectAgent(
  snapshot: RuntimeSnapshot,
  wanted: string | undefined,
  modelSelected: boolean,
): string {
  if (wanted !== undefined && wanted !== "default") {
    const agent = snapshot.agents.find(({ id }) => id === wanted);
    if (agent === undefined) throw unavailable(`agent ${wanted}`);
    const rootMode = agent.mode === "primary" || agent.mode === "all";
    if (!agent.enabled || !rootMode) throw unavailable(`agent ${wanted}`);
    return wanted;
  }
  const fallback = snapshot.default_agent ?? (modelSelected ? "default" : null);
  if (fallback === null) {
    throw new ExitError(
      ExitCode.setup,
      "no_runnable_model",
      "no model is configured; add a provider to ~/.cookie-agent/config.toml, or try the offline model with -m offline/script",
    );
  }
  return fallback;
}

/** The model that a flag or the resumed session names; null when the agent's chain decides. */
function selectModel(
  snapshot: RuntimeSnapshot,
  flags: SelectionFlags,
  resumed: RunSelection | null,
): RunSelection["model"] | null {
  if (flags.model !== undefined) {
    const entry = findModel(snapshot, flags.model);
    return { model: entry.key, variant: selectVariant(entry, flags.variant) };
  }
  const live = snapshot.models.find(({ key }) => key === resumed?.model.model);
  if (resumed !== null && live?.available) {
    const variant =
      flags.variant === undefined ? resumed.model.variant : selectVariant(live, flags.variant);
    return { model: resumed.model.model, variant };
  }
  return null;
}

function chainModel(
  snapshot: RuntimeSnapshot,
  flags: SelectionFlags,
  resumed: RunSelection | null,
): RunSelection["model"] {
  const id = flags.agent ?? resumed?.agent ?? snapshot.default_agent;
  const chain = snapshot.agents.find((agent) => agent.id === id)?.resolved_fallback ?? [];
  const first = chain[0] ?? firstAvailable(snapshot);
  if (first === undefined) throw unavailable(`a model for agent ${id ?? "default"}`);
  if (flags.variant === undefined) return first;
  return {
    model: first.model,
    variant: selectVariant(findModel(snapshot, first.model), flags.variant),
  };
}

function firstAvailable(snapshot: RuntimeSnapshot): RunSelection["model"] | undefined {
  const entry = snapshot.models.find(({ available, offline }) => available && !offline);
  return entry === undefined ? undefined : { model: entry.key, variant: entry.default_variant };
}

function findModel(snapshot: RuntimeSnapshot, key: string): ModelEntry {
  const entry = snapshot.models.find((model) => model.key === key);
  if (entry === undefined || !entry.available) throw unavailable(`model ${key}`);
  return entry;
}

function selectVariant(entry: ModelEntry, wanted: string | undefined): string | null {
  if (wanted === undefined) return entry.default_variant;
  if (wanted === "base") return null;
  if (!entry.variants.includes(wanted))
    throw unavailable(`variant ${wanted} of model ${entry.key}`);
  return wanted;
}

function unavailable(what: string): ExitError {
  return new ExitError(ExitCode.setup, "unavailable", `${what} is not available`);
}
