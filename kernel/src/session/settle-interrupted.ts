import type { EventPayload, RunId } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-log.ts";
import type { SessionState } from "./session-state.ts";

/**
 * What has to be written before a session whose last owner ended in mid-run can go on: the run, its calls and its
 * approvals get the terminal events that they miss, in this order (S 3.8). Nothing is replayed.
 */
export function settleInterrupted(state: SessionState): EventDraft[] {
  const drafts: EventDraft[] = [];
  const write = (payload: EventPayload, runId: RunId) => drafts.push({ payload, runId });
  if (state.activeRun !== null) {
    write({ type: "run_interrupted", reason: "daemon restart" }, state.activeRun.runId);
  }
  for (const [toolCallId, { owner, runId }] of state.openCalls) {
    write(
      {
        type: "tool_call_terminated",
        tool_call_id: toolCallId,
        owner,
        outcome: "interrupted",
        result: null,
        error: {
          code: "prepared_capability_lost",
          message:
            "interrupted by a daemon restart; the call may have run in part and was not repeated",
        },
      },
      runId,
    );
  }
  for (const [approvalId, { runId }] of state.openApprovals) {
    const approval_id = approvalId as Extract<
      EventPayload,
      { type: "approval_cancelled" }
    >["approval_id"];
    write(
      { type: "approval_cancelled", approval_id, reason_code: "prepared_capability_lost" },
      runId,
    );
    write(
      {
        type: "approval_finalized",
        approval_id,
        decision: {
          status: "cancelled",
          source: "system",
          reason: "prepared_capability_lost",
          feedback: null,
        },
      },
      runId,
    );
  }
  return drafts;
}
