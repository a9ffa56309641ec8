import { HOOK_LIMITS, utf8Length } from "@cookie-agent/sdk/protocol";
import { internalAgentOf } from "../config/internal-agents.ts";
import type { HookChain, HookOutcome } from "../plugin/hook-chain.ts";
import type { HookSite } from "../plugin/hook-site.ts";
import { createId } from "../support/create-id.ts";
import type { CompactionScene } from "./compaction-scene.ts";

/** What plugins make of the instructions of a summary. */
export interface CompactionInstructions {
  readonly additions: readonly string[];
  /** In place of the instructions; null: they stay. */
  readonly override: string | null;
}

/** Asks before a conversation is summarized; a cancelled compaction is `blocked` with its reason (E-160, E-163). */
export function beforeCompact(
  hooks: HookChain,
  site: HookSite,
  compaction: { readonly checkpointId: string; readonly instructions: string },
  signal: AbortSignal,
): Promise<HookOutcome<CompactionInstructions>> {
  const state: CompactionInstructions = { additions: [], override: null };
  return hooks.run(
    "session_before_compact",
    site,
    {
      state,
      facts: ({ additions, override }) => ({
        checkpoint_id: compaction.checkpointId,
        additions: [...additions],
        instructions: override ?? compaction.instructions,
      }),
      take: (before, { addendum, instructions_override: override, cancel, reason }) => {
        if (cancel === true) return { kind: "block", reason };
        const additions = [...before.additions, ...(addendum === undefined ? [] : [addendum])];
        const { compactionBytes } = HOOK_LIMITS;
        if (additions.reduce((total, each) => total + utf8Length(each), 0) > compactionBytes) {
          return { kind: "invalid", problem: `the additions exceed ${compactionBytes} bytes` };
        }
        if (utf8Length(override ?? "") > compactionBytes) {
          return { kind: "invalid", problem: `the override exceeds ${compactionBytes} bytes` };
        }
        return { kind: "go", state: { additions, override: override ?? before.override } };
      },
    },
    signal,
  );
}

/**
 * What the summary is asked for: the agent's own instructions or those of a plugin, what plugins add, and what a person
 * wants it to pay attention to.
 */
export async function composeInstructions(
  { run, site, stages: { hooks } }: CompactionScene,
  focus: string | null,
  signal: AbortSignal,
): Promise<
  | { readonly kind: "go"; readonly text: string }
  | { readonly kind: "cancelled" | "failed"; readonly reason: string }
> {
  const { prompt } = internalAgentOf(run.internalAgents.agents, "context_compaction");
  let instructions: CompactionInstructions = { additions: [], override: null };
  if (hooks?.has("session_before_compact") === true) {
    const compaction = { checkpointId: createId(), instructions: prompt };
    const outcome = await beforeCompact(hooks, site, compaction, signal).catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (outcome === null) return { kind: "cancelled", reason: "it was stopped" };
    if (outcome.kind === "failure") return { kind: "failed", reason: outcome.reason };
    if (outcome.kind !== "passed") return { kind: "cancelled", reason: outcome.reason };
    instructions = outcome.state;
  }
  const wanted = focus?.trim() ?? "";
  const text = [
    (instructions.override ?? prompt).trimEnd(),
    ...instructions.additions,
    ...(wanted === "" ? [] : [`Pay attention to this above all: ${wanted}`]),
  ].join("\n\n");
  return { kind: "go", text };
}
