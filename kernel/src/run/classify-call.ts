import type { Classification } from "../permission/permission-mode.ts";
import type { ClassifiedCall } from "../tool/dispatch-stages.ts";
import { internalAgentOwner } from "./internal-agent-owner.ts";
import type { RunContext } from "./run-context.ts";

/** Asks the approval classifier about a call of the run (S 6.13); rejects only when the log cannot be written. */
export async function classifyCall(
  context: RunContext,
  call: ClassifiedCall,
  signal: AbortSignal,
): Promise<Classification> {
  const { askApproval } = await import("../internal-agent/ask-approval.ts");
  const { latest } = context.view.userInputs;
  return askApproval(internalAgentOwner(context), { ...call, latestUserMessage: latest }, signal);
}
