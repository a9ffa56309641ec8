import type {
  ApprovalId,
  AttemptId,
  SessionId,
  ToolCallId,
  TreeApprovalGrantId,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { AppendChecks } from "../../../../kernel/src/event/append-checks.ts";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import {
  diagnostic,
  draft,
  eventsOf,
  overlaySet,
  RunScript,
  sessionCreated,
} from "./event-fixtures.ts";

/** Admits all drafts in order; the first refusal throws. */
function admitAll(drafts: readonly EventDraft[], checks = new AppendChecks()): AppendChecks {
  for (const [index, each] of drafts.entries()) checks.admit(each, index + 1);
  return checks;
}

function refused(drafts: readonly EventDraft[]): void {
  const checks = admitAll(drafts.slice(0, -1));
  const last = drafts.at(-1);
  if (last === undefined) throw new Error("no draft");
  expect(() => checks.admit(last, drafts.length)).toThrowError(
    expect.objectContaining({ code: "engine" }),
  );
}

const run = new RunScript();
const other = new RunScript(2);
const begun = [sessionCreated(), run.started(), run.input()];
const attempted = [...begun, run.attempt()];
const committed = [...attempted, run.turn(), run.usage()];
const calling = [...committed, run.callStarted()];
const approvalId = createId<ApprovalId>();
const decision = {
  status: "approved",
  source: "user",
  reason: "user_approved_once",
  feedback: null,
} as const;
const withdrawn = {
  ...decision,
  status: "cancelled",
  source: "system",
  reason: "request_cancelled",
} as const;
const digest = "0".repeat(64);

const requested = run.of({
  type: "approval_requested",
  request: {
    approval_id: approvalId,
    revision: 1,
    trigger: "permission_policy",
    tool_call_id: run.callId,
    tool: "read",
    operation_fingerprint: digest,
    operation: {
      normalized_arguments_digest: digest,
      capabilities: [{ action: "read", operation: "read" }],
      resources: [],
      execution_context_digest: digest,
    },
    evaluations: [{ action: "read", label: "a", effect: "ask", pattern: null, source: "default" }],
    title: "Read a",
    detail: null,
    constraints: { allow_once: true, allow_tree_grant: false, cancellable: true, expires_at: null },
  },
});
const escalated = run.of({
  type: "approval_escalated",
  approval_id: approvalId,
  reason_code: "escalated",
});
const answered = run.of({
  type: "approval_user_decision_recorded",
  approval_id: approvalId,
  client_response_id: "r",
  decision: "approve_once",
  feedback: null,
});
const granted = run.of({
  type: "tree_approval_grant_committed",
  grant: {
    grant_id: createId<TreeApprovalGrantId>(),
    root_session_id: createId<SessionId>(),
    approval_id: approvalId,
    operation_fingerprint: "0".repeat(64),
    capabilities: [],
    resources: [],
    created_at: "2030-01-01T00:00:00.000Z",
  },
});
const finalized = run.of({ type: "approval_finalized", approval_id: approvalId, decision });
const cancelled = run.of({
  type: "approval_cancelled",
  approval_id: approvalId,
  reason_code: "request_cancelled",
});
const finalizedCancelled = run.of({
  type: "approval_finalized",
  approval_id: approvalId,
  decision: withdrawn,
});

test("[S-048] a whole run in order is admitted", () => {
  admitAll([...calling, run.callEnded(), run.completed(), other.started(), other.attempt()]);
});

describe("scope", () => {
  test.for([
    ["session_created a second time", [sessionCreated(), sessionCreated()]],
    ["anything before session_created", [diagnostic()]],
  ] as [string, EventDraft[]][])("[S-039] %s is refused", ([, drafts]) => refused(drafts));

  test.for([
    ["an overlay inside a run", [...begun, { ...overlaySet(), runId: run.runId }]],
    ["run output outside a run", [...attempted, { ...run.text("x"), runId: null }]],
    [
      "a user title inside a run",
      [
        ...begun,
        run.of({
          type: "session_title_committed",
          change: { kind: "user_clear", client_rename_id: "c" },
          input_through_seq: 0,
        }),
      ],
    ],
    [
      "an automatic title outside a run",
      [
        ...begun,
        draft({
          type: "session_title_committed",
          change: { kind: "fallback_set", title: "t" },
          input_through_seq: 0,
        }),
      ],
    ],
  ] as [string, EventDraft[]][])("[S-038] %s is refused", ([, drafts]) => refused(drafts));
});

test.for([
  ["a second run at a time", [...begun, other.started()]],
  ["an event of an unknown run", [...begun, other.input()]],
  ["an event after the run's end", [...begun, run.completed(), run.input()]],
  ["a second end of a run", [...begun, run.completed(), run.interrupted()]],
  ["a run that starts again", [...begun, run.completed(), run.started()]],
] as [string, EventDraft[]][])("[S-041] %s is refused", ([, drafts]) => refused(drafts));

test.for([
  ["two attempts at a time", [...attempted, run.attempt({ attempt_ordinal: 2 })]],
  ["a first attempt that is not number 1", [...begun, run.attempt({ attempt_ordinal: 2 })]],
  [
    "a retry that skips a number",
    [...attempted, run.abandoned(), run.attempt({ attempt_ordinal: 2, retry_ordinal: 2 })],
  ],
  [
    "a retry counted as a first try",
    [...attempted, run.abandoned(), run.attempt({ attempt_ordinal: 2 })],
  ],
  ["a chain entry nobody fell back to", [...begun, run.attempt({ fallback_index: 1 })]],
  [
    "a fallback over two entries",
    [...attempted, run.abandoned(), run.fallback({ to_fallback_index: 2 })],
  ],
  [
    "a fallback with a wrong count",
    [...attempted, run.abandoned(), run.fallback({ attempts_on_from: 2 })],
  ],
  ["a delta of another attempt", [...begun, run.text("x")]],
  ["an abandonment of another attempt", [...attempted, run.abandoned(createId<AttemptId>())]],
] as [string, EventDraft[]][])("[S-045] %s is refused", ([, drafts]) => refused(drafts));

test("[S-045] retries count on per entry and start anew after a fallback and after a turn", () => {
  const retry = (ordinal: number, changes = {}) =>
    run.attempt({ attempt_ordinal: ordinal, ...changes });
  admitAll([
    ...attempted,
    run.abandoned(),
    retry(2, { retry_ordinal: 1 }),
    run.abandoned(),
    run.fallback({ attempts_on_from: 2 }),
    retry(3, { fallback_index: 1 }),
    run.turn(),
    run.usage(),
    retry(4, { fallback_index: 1 }),
  ]);
});

test.for([
  ["the first turn is not number 1", [...attempted, run.turn({ model_turn_seq: 2 })]],
  ["a turn repeats a number", [...committed, run.attempt({ attempt_ordinal: 2 }), run.turn()]],
] as [string, EventDraft[]][])("[S-044] refused when %s", ([, drafts]) => refused(drafts));

test.for([
  ["a second record for a turn", [...committed, run.usage()]],
  ["a record for another turn", [...attempted, run.turn(), run.usage(2)]],
] as [string, EventDraft[]][])("[S-043] %s is refused", ([, drafts]) => refused(drafts));

test.for([
  ["a call that no turn asked for", [...attempted, run.callStarted()]],
  [
    "a part that is not a call",
    [...committed, run.callStarted({ owner: { ...run.owner, content_index: 0 } })],
  ],
  [
    "a call under another model id",
    [...committed, run.callStarted({ owner: { ...run.owner, model_call_id: "x" } })],
  ],
  [
    "a second start of a call",
    [...calling, run.callStarted({ tool_call_id: createId<ToolCallId>() })],
  ],
  ["a second end of a call", [...calling, run.callEnded(), run.callEnded()]],
  ["the end of a call that never started", [...committed, run.callEnded()]],
  [
    "an end under another owner",
    [...calling, run.callEnded({ owner: { ...run.owner, content_index: 0 } })],
  ],
  ["progress after the end", [...calling, run.callEnded(), run.progress("x")]],
  [
    "stdin before the start",
    [
      ...committed,
      run.of({ type: "tool_stdin_submitted", tool_call_id: run.callId, byte_count: 1 }),
    ],
  ],
  ["a completed call without a result", [...calling, run.callEnded({ result: null })]],
  ["a failed call without an error", [...calling, run.callEnded({ outcome: "failed" })]],
] as [string, EventDraft[]][])("[S-042] %s is refused", ([, drafts]) => refused(drafts));

test("[S-048] a model call id used twice in a run is refused", () => {
  refused([...committed, run.attempt({ attempt_ordinal: 2 }), run.turn({ model_turn_seq: 2 })]);
});

describe("approvals", () => {
  test.for([
    ["by policy or mode", [requested, finalized]],
    ["by the user", [requested, escalated, answered, finalized]],
    ["by an answer for the whole tree", [requested, escalated, answered, granted, finalized]],
    ["by withdrawal", [requested, escalated, cancelled, finalizedCancelled]],
    [
      "by withdrawal that a crash cut in two",
      [requested, cancelled, cancelled, finalizedCancelled],
    ],
  ] as [string, EventDraft[]][])("[S-048] an approval may end %s", ([, drafts]) => {
    admitAll([...calling, ...drafts]);
  });

  test.for([
    ["an answer nobody asked for", [requested, answered]],
    ["a grant that nobody has answered for", [requested, escalated, granted]],
    ["a grant behind the final word", [requested, escalated, answered, finalized, granted]],
    ["a second final word", [requested, finalized, finalized]],
    ["an approval after its withdrawal", [requested, cancelled, finalized]],
    ["a withdrawal that was not recorded", [requested, finalizedCancelled]],
    ["an approval that was never requested", [finalized]],
    ["an open approval requested again", [requested, requested]],
  ] as [string, EventDraft[]][])("[S-048] %s is refused", ([, drafts]) => {
    refused([...calling, ...drafts]);
  });
});

test("[S-042] calls and approvals of an interrupted run can still be settled", () => {
  const failed = {
    outcome: "interrupted",
    result: null,
    error: { code: "x", message: "y" },
  } as const;
  admitAll([
    ...calling,
    requested,
    run.interrupted(),
    run.callEnded(failed),
    cancelled,
    finalizedCancelled,
  ]);
});

describe("after damage", () => {
  const fold = (drafts: readonly EventDraft[]) => {
    const checks = new AppendChecks();
    for (const event of eventsOf(createId<SessionId>(), drafts)) checks.fold(event);
    return checks;
  };

  test("[S-059] events whose prerequisite is gone are read, and what hangs on it is refused", () => {
    const checks = fold([sessionCreated(), run.turn(), run.callStarted()]);
    expect(() => checks.admit(run.completed(), 4)).toThrowError(/not active/);
  });

  test("[S-059] what a run with a lost start left open can be settled", () => {
    const checks = fold([sessionCreated(), run.turn(), run.callStarted()]);
    checks.admit(run.callEnded(), 4);
    checks.admit(other.started(), 5);
  });
});

test("[S-047] what was admitted can be taken back as a whole", () => {
  const checks = admitAll(committed);
  checks.keep();
  checks.admit(run.callStarted(), 7);
  checks.admit(run.callEnded(), 8);
  checks.admit(run.completed(), 9);
  checks.undo();
  checks.admit(run.callStarted(), 7);
  checks.admit(run.callEnded(), 8);
});
