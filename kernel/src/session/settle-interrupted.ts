import type { EventPayload, EventPayloadOf, RunError, RunId } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import type { SessionState } from "./session-state.ts";

/** A run of this process that failed without its terminal event. */
export interface UnrecordedEnd {
  readonly runId: RunId;
  readonly error: RunError;
}

/**
 * What has to be written before a session can go on whose run ended without its terminal events, in this order
 * (S 3.8): its internal agents, the run, its calls, its approvals. Nothing is replayed.
 * @param unrecorded Why the run ended, when that is known; else its process died.
 * @param keepsInternalAgents One is still at work here and will record its own end.
 */
export function settleInterrupted(
  state: SessionState,
  {
    unrecorded = null,
    keepsInternalAgents = false,
  }: { unrecorded?: UnrecordedEnd | null; keepsInternalAgents?: boolean } = {},
): EventDraft[] {
  const lost = unrecorded === null ? "daemon restart" : "the run failed";
  const drafts = keepsInternalAgents ? [] : state.openInternalAgents.interrupted(lost);
  const write = (payload: EventPayload, runId: RunId) => drafts.push({ payload, runId });
  if (state.activeRun !== null) {
    const { runId } = state.activeRun;
    write(
      unrecorded?.runId === runId
        ? { type: "run_failed", error: unrecorded.error }
        : { type: "run_interrupted", reason: "daemon restart" },
      runId,
    );
  }
  for (const [toolCallId, { owner, runId }] of state.openCalls) {
    const cause = unrecorded?.runId === runId ? "a failure of the run" : "a daemon restart";
    write(
      {
        type: "tool_call_terminated",
        tool_call_id: toolCallId,
        owner,
        outcome: "interrupted",
        result: null,
        error: {
          code: "prepared_capability_lost",
          message: `interrupted by ${cause}; the call may have run in part and was not repeated`,
        },
      },
      runId,
    );
  }
  for (const [approval_id, { runId }] of state.openApprovals) {
    write(
      { type: "approval_cancelled", approval_id, reason_code: "prepared_capability_lost" },
      runId,
    );
    write({ type: "approval_finalized", approval_id, decision: LOST }, runId);
  }
  return drafts;
}

const LOST: EventPayloadOf<"approval_finalized">["decision"] = {
  status: "cancelled",
  source: "system",
  reason: "prepared_capability_lost",
  feedback: null,
};
