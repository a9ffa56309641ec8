import { CookieError, type RunSelection } from "@cookie-agent/sdk/protocol";
import { RunLog } from "../event/run-log.ts";
import type { Policy } from "../permission/compile-rules.ts";
import { admitRun } from "../run/admit-run.ts";
import { compactContext } from "../run/compact-context.ts";
import type { SessionParts } from "./session-parts.ts";

/** How `session.compact` ended when it did not fail; without a checkpoint one of the reasons may say why. */
export interface CompactedSession {
  readonly compacted: boolean;
  readonly cancellation_reason?: string;
  readonly failure?: string;
}

/**
 * Summarizes an idle session as its next run would see it (S-224). Rejects with `cancelled` when `signal` aborts, with
 * `no_runnable_model` when nobody could be asked.
 */
export async function compactSession(
  parts: SessionParts,
  wanted: {
    readonly selection: RunSelection | null;
    readonly focus: string | null;
    readonly policy: () => Policy;
  },
  signal: AbortSignal,
): Promise<CompactedSession> {
  const { sessionId, rootSessionId, services, log, state } = parts;
  if (state.history.messages.length === 0) return { compacted: false };
  if (wanted.selection === null) {
    throw new CookieError("no_runnable_model", "no model can run; connect a provider first");
  }
  const run = await admitRun(services.facts, wanted.selection, state);
  const { workspaceRoot } = services.facts;
  const result = await compactContext(
    {
      runId: null,
      site: { sessionId, rootSessionId, runId: null, toolCallId: null },
      history: state.history,
      estimator: state.estimator,
      run,
      chainIndex: 0,
      log: new RunLog(log),
      stages: { ...services.stages, policy: wanted.policy },
      workspaceRoot,
      budget: parts.budget,
      lastSeq: () => state.lastSeq,
      inputThroughSeq: () => state.inputThroughSeq,
    },
    { kind: "manual", focus: wanted.focus },
    signal,
  );
  if (signal.aborted) throw new CookieError("cancelled", "the compaction was cancelled");
  switch (result.kind) {
    case "compacted":
      return { compacted: true };
    case "skipped":
      return { compacted: false };
    case "cancelled":
      return { compacted: false, cancellation_reason: result.reason };
    case "failed":
      return { compacted: false, failure: result.reason };
  }
}
