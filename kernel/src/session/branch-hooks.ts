import { HOOK_LIMITS, utf8Length } from "@cookie-agent/sdk/protocol";
import { blockedError } from "../plugin/blocked-error.ts";
import { type HookParts, siteOf, unlessClosing } from "./admission-hooks.ts";

/** Asks before a session is forked; rejects with `operation_blocked` or `shutting_down` (E-160, E-163). */
export async function passFork(parts: HookParts, throughSeq: number): Promise<void> {
  const { hooks } = parts.services.stages;
  if (hooks?.has("session_before_fork") !== true) return;
  const asked = hooks.run(
    "session_before_fork",
    siteOf(parts),
    {
      state: null,
      facts: () => ({ through_seq: throughSeq }),
      take: (state, { action, reason }) =>
        action === "block" ? { kind: "block", reason } : { kind: "go", state },
    },
    parts.closing,
  );
  const outcome = await unlessClosing(parts, asked);
  if (outcome.kind !== "passed") throw blockedError(outcome, "operation_blocked");
}

/** Asks before a session is reverted; yields what plugins want the next input to say, null for nothing. */
export async function passRevert(parts: HookParts, throughSeq: number): Promise<string | null> {
  const { hooks } = parts.services.stages;
  if (hooks?.has("session_before_revert") !== true) return null;
  const { compactionBytes: maxBytes } = HOOK_LIMITS;
  const asked = hooks.run<"session_before_revert", string | null>(
    "session_before_revert",
    siteOf(parts),
    {
      state: null,
      facts: (instructions) => ({
        through_seq: throughSeq,
        ...(instructions !== null && { instructions }),
      }),
      take: (before, { action, reason, instructions_override: override }) => {
        if (action === "block") return { kind: "block", reason };
        if (utf8Length(override ?? "") > maxBytes) {
          return { kind: "invalid", problem: `the override exceeds ${maxBytes} bytes` };
        }
        return { kind: "go", state: override ?? before };
      },
    },
    parts.closing,
  );
  const outcome = await unlessClosing(parts, asked);
  if (outcome.kind === "passed") return outcome.state;
  throw blockedError(outcome, "operation_blocked");
}
