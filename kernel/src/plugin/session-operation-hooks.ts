import { HOOK_LIMITS, utf8Length } from "@cookie-agent/sdk/protocol";
import type { HookChain, HookOutcome } from "./hook-chain.ts";
import type { HookSite } from "./hook-site.ts";

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
  compaction: { readonly checkpointId: string; readonly instructions: string | null },
  signal: AbortSignal,
): Promise<HookOutcome<CompactionInstructions>> {
  const state: CompactionInstructions = { additions: [], override: null };
  return hooks.run(
    "session_before_compact",
    site,
    {
      state,
      facts: ({ additions, override }) => {
        const instructions = override ?? compaction.instructions;
        return {
          checkpoint_id: compaction.checkpointId,
          additions: [...additions],
          ...(instructions !== null && { instructions }),
        };
      },
      take: (before, { addendum, instructions_override: override, cancel, reason }) => {
        if (cancel === true) return { kind: "block", reason };
        const additions = [...before.additions, ...(addendum === undefined ? [] : [addendum])];
        const { compactionBytes } = HOOK_LIMITS;
        if (additions.reduce((sum, each) => sum + utf8Length(each), 0) > compactionBytes) {
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

/** Asks before a session is forked. */
export function beforeFork(
  hooks: HookChain,
  site: HookSite,
  throughSeq: number,
  signal: AbortSignal,
): Promise<HookOutcome<null>> {
  return hooks.run(
    "session_before_fork",
    site,
    {
      state: null,
      facts: () => ({ through_seq: throughSeq }),
      take: (state, { action, reason }) =>
        action === "block" ? { kind: "block", reason } : { kind: "go", state },
    },
    signal,
  );
}

/** Asks before a session is reverted; passes with the instructions to use, null for none. */
export function beforeRevert(
  hooks: HookChain,
  site: HookSite,
  revert: { readonly throughSeq: number; readonly instructions: string | null },
  signal: AbortSignal,
): Promise<HookOutcome<string | null>> {
  return hooks.run(
    "session_before_revert",
    site,
    {
      state: revert.instructions,
      facts: (instructions) => ({
        through_seq: revert.throughSeq,
        ...(instructions !== null && { instructions }),
      }),
      take: (before, { action, reason, instructions_override: override }) => {
        if (action === "block") return { kind: "block", reason };
        if (utf8Length(override ?? "") > HOOK_LIMITS.compactionBytes) {
          return {
            kind: "invalid",
            problem: `the override exceeds ${HOOK_LIMITS.compactionBytes} bytes`,
          };
        }
        return { kind: "go", state: override ?? before };
      },
    },
    signal,
  );
}
