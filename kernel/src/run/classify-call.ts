import type { Classification } from "../permission/permission-mode.ts";
import type { ClassifiedCall } from "../tool/dispatch-stages.ts";
import { internalAgentOwner } from "./internal-agent-owner.ts";
import type { RunContext } from "./run-context.ts";
import type { CancelReason } from "./run-loop.ts";

/**
 * Asks the approval classifier about a call of the run (S 6.13); rejects only when the log cannot be written.
 * @param stop Ends the run, because its tree has used up its budget and no model may be asked any more (S-261).
 */
export async function classifyCall(
  context: RunContext,
  call: ClassifiedCall,
  signal: AbortSignal,
  stop: (reason: CancelReason) => void,
): Promise<Classification> {
  const exceeded = context.budget?.check(context.log.held) ?? null;
  if (exceeded !== null) {
    stop({ reason: exceeded.reason });
    return "ask";
  }
  const { askApproval } = await import("../internal-agent/ask-approval.ts");
  const { latest } = context.view.userInputs;
  return askApproval(internalAgentOwner(context), { ...call, latestUserMessage: latest }, signal);
}
