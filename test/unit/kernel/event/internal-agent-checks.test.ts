import type {
  InternalAgentInvocationId,
  InternalAgentRunId,
  RunId,
} from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { AppendChecks } from "../../../../kernel/src/event/append-checks.ts";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { RunScript, sessionCreated } from "./event-fixtures.ts";

const run = new RunScript();
const other = new RunScript(2);
const MODEL = { model: "a/b", variant: null };
const FAILURE = {
  code: "model_failure",
  message: "no",
  retryable: false,
  model_error: null,
} as const;
const ids = {
  invocation_id: createId<InternalAgentInvocationId>(),
  internal_run_id: createId<InternalAgentRunId>(),
};

/** The events of one internal agent that is asked on behalf of `runId`. */
function agentOf(runId: RunId | null, { invocation_id, internal_run_id } = ids) {
  const of = (payload: EventDraft["payload"]): EventDraft => ({ payload, runId });
  const both = { invocation_id, internal_run_id };
  return {
    started: () =>
      of({
        type: "internal_agent_started",
        ...both,
        kind: "approval",
        backend: { type: "model", resolved_model: MODEL },
        call: { name: "approval", input_summary: "a call", input_digest: "0".repeat(64) },
      }),
    usage: (kind: "approval" | "session_title" = "approval") =>
      of({
        type: "internal_agent_usage_recorded",
        internal_run_id,
        kind,
        agent_id: "approval",
        resolved_model: MODEL,
        usage: NO_USAGE,
        estimated_cost_pico_usd: null,
      }),
    fallback: () =>
      of({
        type: "internal_agent_fallback",
        ...both,
        from: MODEL,
        to: MODEL,
        failure: FAILURE,
        attempts: 1,
      }),
    completed: () =>
      of({
        type: "internal_agent_completed",
        ...both,
        result: { output_summary: "x", output_digest: "0".repeat(64) },
      }),
    failed: () => of({ type: "internal_agent_failed", ...both, failure: FAILURE }),
    cancelled: () => of({ type: "internal_agent_cancelled", ...both, reason: null }),
    interrupted: () => of({ type: "internal_agent_interrupted", ...both, reason: null }),
  };
}

const NO_USAGE = {
  input_tokens: null,
  input_tokens_no_cache: null,
  input_tokens_cache_read: null,
  input_tokens_cache_write: null,
  output_tokens: null,
  output_tokens_text: null,
  output_tokens_reasoning: null,
};

const agent = agentOf(run.runId);
const begun = [sessionCreated(), run.started(), run.input()];
const asked = [...begun, agent.started()];

function admitAll(drafts: readonly EventDraft[]): AppendChecks {
  const checks = new AppendChecks();
  for (const [index, each] of drafts.entries()) checks.admit(each, index + 1);
  return checks;
}

test.for<[string, EventDraft[]]>([
  ["asked and answered", [...asked, agent.usage(), agent.completed()]],
  [
    "asked of two models",
    [...asked, agent.usage(), agent.fallback(), agent.usage(), agent.failed()],
  ],
  ["answered after the run", [...asked, run.completed(), agent.usage(), agent.completed()]],
  [
    "answered while the next run runs",
    [...asked, run.completed(), other.started(), agent.completed()],
  ],
  ["asked outside any run", [...begun, agentOf(null).started(), agentOf(null).completed()]],
  [
    "asked twice at a time",
    [
      ...asked,
      agentOf(run.runId, {
        invocation_id: createId(),
        internal_run_id: createId(),
      }).started(),
      agent.cancelled(),
    ],
  ],
])("an internal agent may be %s", ([, drafts]) => {
  expect(() => admitAll(drafts)).not.toThrow();
});

test.for<[string, EventDraft[]]>([
  ["an end without a start", [...begun, agent.completed()]],
  ["a second start", [...asked, agent.started()]],
  ["a second end", [...asked, agent.completed(), agent.failed()]],
  ["an interruption after its end", [...asked, agent.cancelled(), agent.interrupted()]],
  ["a second usage of one model", [...asked, agent.usage(), agent.usage()]],
  ["usage of another kind", [...asked, agent.usage("session_title")]],
  ["usage after its end", [...asked, agent.completed(), agent.usage()]],
  [
    "an end in another run",
    [...asked, run.completed(), other.started(), agentOf(other.runId).failed()],
  ],
  ["an end outside its run", [...asked, agentOf(null).failed()]],
  ["a start in a run that nobody knows", [...begun, agentOf(other.runId).started()]],
  [
    "an end of another invocation",
    [...asked, agentOf(run.runId, { ...ids, invocation_id: createId() }).completed()],
  ],
])("[S-048] an internal agent is refused %s", ([, drafts]) => {
  const checks = admitAll(drafts.slice(0, -1));
  const last = drafts.at(-1);
  if (last === undefined) throw new Error("no draft");
  expect(() => checks.admit(last, drafts.length)).toThrowError(
    expect.objectContaining({ code: "engine" }),
  );
});

test("a block that is taken back leaves an internal agent as it was", () => {
  const checks = admitAll(asked);
  checks.keep();
  checks.admit(agent.usage(), 5);
  checks.admit(agent.completed(), 6);
  checks.undo();
  expect(() => checks.admit(agent.usage(), 5)).not.toThrow();
});
