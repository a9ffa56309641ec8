import {
  type ApprovalRecord,
  CookieError,
  DecisionReason,
  DecisionSource,
  type PermissionMode,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test, vi } from "vitest";
import { RunLog } from "../../../../kernel/src/event/run-log.ts";
import type { ApprovalGate } from "../../../../kernel/src/permission/approval-gate.ts";
import { DEFAULT_PERMISSION_MODE } from "../../../../kernel/src/permission/permission-mode.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";
import { askFor, GateSession, NEVER } from "./approval-fixtures.ts";

type Decision = "approve_once" | "approve_tree" | "reject" | "cancel";

function answer(record: ApprovalRecord, decision: Decision, extra: Record<string, unknown> = {}) {
  return {
    session_id: record.session_id as Parameters<ApprovalGate["respond"]>[0]["session_id"],
    approval_id: record.request.approval_id,
    request_revision: record.request.revision,
    operation_fingerprint: record.request.operation_fingerprint,
    client_response_id: "response-1",
    decision,
    ...extra,
  };
}

const evaluations = askFor().verdict.evaluations;

describe("without a request", () => {
  test("[S-163] what policy allows is granted and leaves no events", async () => {
    const session = new GateSession({});
    const outcome = await session.decide(
      askFor("a", { verdict: { effect: "allow", evaluations } }),
      NEVER,
    );
    expect(outcome).toEqual({ granted: true, source: "policy", reason: "policy_allowed" });
    expect(session.types).toEqual([]);
  });

  test.for<PermissionMode>(["auto_approve", "auto_approve_n", "auto_approve_y", "ask", "yolo"])(
    "[S-163] what policy denies is refused in mode %s, also when the model asks for approval",
    async (mode) => {
      const session = new GateSession({ mode });
      const outcome = await session.decide(
        askFor("a", { verdict: { effect: "deny", evaluations }, trigger: "model_tool_approval" }),
        NEVER,
      );
      expect(outcome).toEqual({
        granted: false,
        source: "policy",
        reason: "policy_denied",
        feedback: null,
        escalated: false,
      });
      expect(session.types).toEqual([]);
    },
  );
});

describe("modes", () => {
  const decided = ["approval_requested", "approval_evaluated", "approval_finalized"];

  test.for([
    ["yolo", { granted: true, source: "policy", reason: "yolo_approved" }],
    [
      "auto_approve_y",
      { granted: true, source: "permission_mode", reason: "auto_approve_y_approved" },
    ],
  ] as const)("[S-163] in mode %s an ask is decided at once", async ([mode, expected]) => {
    const session = new GateSession({ mode });
    expect(await session.decide(askFor(), NEVER)).toEqual(expected);
    expect(session.types).toEqual(decided);
  });

  test.for<PermissionMode>(["auto_approve", "ask"])(
    "[S-165] [B137] headless, what would wait in mode %s is rejected as unattended",
    async (mode) => {
      const session = new GateSession({ mode, headless: true });
      expect(await session.decide(askFor(), NEVER)).toMatchObject({
        granted: false,
        source: "system",
        reason: "unattended",
        escalated: true,
      });
      expect(session.types).toEqual(decided);
    },
  );

  test("a process starts in the mode auto_approve", () => {
    expect(DEFAULT_PERMISSION_MODE).toBe("auto_approve");
  });

  test("[S-163] an approval that the model asks for is requested although policy allows", async () => {
    const session = new GateSession({ mode: "yolo" });
    const request = askFor("a", {
      trigger: "model_tool_approval",
      verdict: { effect: "allow", evaluations },
    });
    expect(await session.decide(request, NEVER)).toMatchObject({ reason: "yolo_approved" });
    expect(session.types).toEqual(decided);
  });

  test("[S-162] a change of mode leaves a pending approval alone", async () => {
    const session = new GateSession({ mode: "ask" });
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    session.currentMode = "yolo";
    expect((await session.waiting()).status).toBe("escalated");
    await session.gate.respond(answer(record, "reject"));
    expect(await outcome).toMatchObject({ granted: false, reason: "user_rejected" });
  });
});

describe("answers of a person", () => {
  test.for([
    ["approve_once", undefined, { granted: true, source: "user", reason: "user_approved_once" }],
    [
      "reject",
      "use npm",
      { granted: false, source: "user", reason: "user_rejected", feedback: "use npm" },
    ],
    ["cancel", undefined, { granted: false, source: "user", reason: "user_cancelled" }],
  ] as const)("[S-169] [T-006] %s ends the approval", async ([decision, feedback, expected]) => {
    const session = new GateSession({});
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    const settled = await session.gate.respond(
      answer(record, decision, feedback === undefined ? {} : { feedback }),
    );
    expect(await outcome).toMatchObject(expected);
    expect(settled).toMatchObject({
      user_decision: decision,
      final_decision: { reason: expected.reason },
    });
    expect(session.types).toEqual([
      "approval_requested",
      "approval_evaluated",
      "approval_escalated",
      "approval_user_decision_recorded",
      ...(decision === "cancel" ? ["approval_cancelled"] : []),
      "approval_finalized",
    ]);
  });

  test("an answer that arrives while the request is being recorded waits for it", async () => {
    const session = new GateSession({});
    const record = session.record.bind(session);
    const answers: Promise<ApprovalRecord>[] = [];
    session.record = (payload, runId) => {
      const event = record(payload, runId);
      if (payload.type === "approval_requested") {
        const [pending] = session.gate.list("pending");
        if (pending) answers.push(session.gate.respond(answer(pending, "approve_once")));
      }
      return event;
    };
    expect(await session.decide(askFor(), NEVER)).toMatchObject({ granted: true });
    expect(await Promise.all(answers)).toMatchObject([{ status: "approved" }]);
  });

  test("[T-020] what was held before a question is recorded before it is asked", async () => {
    const session = new GateSession({});
    const records = new RunLog(session);
    records.hold([{ payload: { type: "user_input_submitted", input: "x" }, runId: null }]);
    const outcome = session.gate.decide(askFor(), NEVER, records);
    const record = await session.waiting();
    expect(session.types).toEqual([
      "user_input_submitted",
      "approval_requested",
      "approval_evaluated",
      "approval_escalated",
    ]);
    await session.gate.respond(answer(record, "approve_once"));
    expect(await outcome).toMatchObject({ granted: true });
  });

  test("[S-169] the checks come in their order", async () => {
    const session = new GateSession({});
    const { gate } = session;
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    const wrong = {
      request_revision: 2,
      operation_fingerprint: "f".repeat(64),
      decision: "approve_tree" as const,
    };
    const unknown = { ...wrong, approval_id: createId<typeof record.request.approval_id>() };
    const respond = (fields: Record<string, unknown>) =>
      gate.respond({ ...answer(record, "approve_tree"), ...fields });

    await expect(respond(unknown)).rejects.toMatchObject({ code: "approval_not_found" });
    await expect(respond(wrong)).rejects.toMatchObject({ code: "approval_revision_conflict" });
    await expect(respond({ ...wrong, request_revision: 1 })).rejects.toMatchObject({
      code: "operation_fingerprint_mismatch",
    });
    await expect(respond({})).rejects.toMatchObject({ code: "decision_not_allowed" });
    await gate.respond(answer(record, "approve_once"));
    await outcome;
    await expect(respond({ ...wrong, client_response_id: "other" })).rejects.toMatchObject({
      code: "approval_not_pending",
    });
  });

  test("[S-169] the same answer again gives the same record, another one is a conflict", async () => {
    const session = new GateSession({});
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    const response = answer(record, "reject", { feedback: "no" });
    const [first, second] = await Promise.all([
      session.gate.respond(response),
      session.gate.respond(response),
    ]);
    expect(second).toEqual(first);
    expect(await session.gate.respond(response)).toEqual(first);
    await expect(session.gate.respond({ ...response, feedback: "never" })).rejects.toMatchObject({
      code: "idempotency_conflict",
    });
    await outcome;
    expect(session.types.filter((type) => type === "approval_finalized")).toHaveLength(1);
  });

  test("[S-169] the first of two answers wins", async () => {
    const session = new GateSession({});
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    const [first, second] = await Promise.allSettled([
      session.gate.respond(answer(record, "approve_once")),
      session.gate.respond({ ...answer(record, "reject"), client_response_id: "response-2" }),
    ]);
    expect(first.status).toBe("fulfilled");
    expect(second).toMatchObject({ reason: { code: "approval_not_pending" } });
    expect(await outcome).toMatchObject({ granted: true });
  });

  test("feedback goes with reject only", async () => {
    const session = new GateSession({});
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    await expect(
      session.gate.respond(answer(record, "approve_once", { feedback: "fine" })),
    ).rejects.toMatchObject({ code: "invalid_params" });
    await session.gate.respond(answer(record, "cancel"));
    await outcome;
  });

  test("an answer that cannot be recorded leaves the approval open", async () => {
    const session = new GateSession({});
    const outcome = session.decide(askFor(), NEVER);
    const record = await session.waiting();
    session.failure = new CookieError("storage_failed", "the disk is full");
    const response = answer(record, "approve_once");
    await expect(session.gate.respond(response)).rejects.toMatchObject({ code: "storage_failed" });
    session.failure = undefined;
    await session.gate.respond(response);
    expect(await outcome).toMatchObject({ granted: true });
  });
});

describe("revalidation", () => {
  test.for([
    ["operation_changed", "operation_changed"],
    ["plugin_crashed", "prepared_capability_lost"],
  ] as const)(
    "[S-271] [S-169] %s before the approval takes effect ends it as %s",
    async ([code, reason]) => {
      const session = new GateSession({});
      const revalidate = () => Promise.reject(new CookieError(code, "gone"));
      const outcome = session.decide(askFor("a", { revalidate }), NEVER);
      const record = await session.waiting();
      await expect(session.gate.respond(answer(record, "approve_once"))).rejects.toMatchObject({
        code: reason,
      });
      expect(await outcome).toMatchObject({ granted: false, source: "system", reason });
      expect(session.types.slice(-2)).toEqual(["approval_cancelled", "approval_finalized"]);
    },
  );

  test("[S-271] it comes before the approval is recorded, and not for a rejection", async () => {
    const session = new GateSession({});
    const seen: string[][] = [];
    const revalidate = async () => void seen.push(session.types);
    const approved = session.decide(askFor("a", { revalidate }), NEVER);
    await session.gate.respond(answer(await session.waiting(), "approve_once"));
    await approved;
    const rejected = session.decide(askFor("b", { revalidate }), NEVER);
    const second = await session.waiting();
    await session.gate.respond(answer(second, "reject", { client_response_id: "response-2" }));
    await rejected;
    expect(seen).toEqual([["approval_requested", "approval_evaluated", "approval_escalated"]]);
  });

  test("[S-271] it is not asked for where nothing had to wait", async () => {
    const session = new GateSession({ mode: "yolo" });
    const revalidate = vi.fn(() => Promise.resolve());
    await session.decide(askFor("a", { revalidate }), NEVER);
    expect(revalidate).not.toHaveBeenCalled();
  });
});

describe("cancellation", () => {
  test("a cancelled run cancels its waiting approval", async () => {
    const session = new GateSession({});
    const run = new AbortController();
    const outcome = session.decide(askFor(), run.signal);
    await session.waiting();
    run.abort();
    expect(await outcome).toMatchObject({ granted: false, reason: "request_cancelled" });
    expect(session.types.slice(-2)).toEqual(["approval_cancelled", "approval_finalized"]);
  });

  test("nothing is asked for a run that is cancelled already", async () => {
    const session = new GateSession({});
    const outcome = await session.decide(askFor(), AbortSignal.abort());
    expect(outcome).toMatchObject({ granted: false, reason: "request_cancelled" });
    expect(session.types).toEqual([]);
  });

  test("an approval that cannot be recorded is the caller's failure and leaves nothing open", async () => {
    const session = new GateSession({});
    session.failure = new CookieError("storage_failed", "the disk is full");
    await expect(session.decide(askFor(), NEVER)).rejects.toMatchObject({
      code: "storage_failed",
    });
    expect(session.gate.list()).toEqual([]);
  });
});

describe("expiry", () => {
  test("[S-171] [C-040] an unattended approval expires and fails as denied", async () => {
    const session = new GateSession({ attended: false, approvalTimeoutMs: 1 });
    expect(await session.decide(askFor(), NEVER)).toEqual({
      granted: false,
      source: "system",
      reason: "approval_expired",
      feedback: expect.stringContaining("expired"),
      escalated: true,
    });
    expect(session.events.at(-2)?.payload).toMatchObject({
      type: "approval_cancelled",
      reason_code: "approval_expired",
    });
    expect(session.gate.list()).toMatchObject([{ status: "expired" }]);
  });

  test("[S-171] [S-270] [C-040] it waits while a client is attached and its time starts at the last detach", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    try {
      const session = new GateSession({ attended: false, approvalTimeoutMs: 1000 });
      const outcome = session.decide(askFor(), NEVER);
      await session.waiting();
      await vi.advanceTimersByTimeAsync(0);
      const expiresAt = (await session.waiting()).request.constraints.expires_at;
      expect(expiresAt).toBe(new Date(Date.now() + 1000).toISOString());

      await vi.advanceTimersByTimeAsync(900);
      session.gate.attachmentChanged(true);
      await vi.advanceTimersByTimeAsync(100_000);
      expect((await session.waiting()).request.constraints.expires_at).toBeNull();

      session.gate.attachmentChanged(false);
      await vi.advanceTimersByTimeAsync(999);
      expect(session.gate.list("escalated")).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(await outcome).toMatchObject({ reason: "approval_expired" });
    } finally {
      vi.useRealTimers();
    }
  });

  test("[S-171] [S-270] it outlives its time when a client attached before the answer ahead of it had failed", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    try {
      const session = new GateSession({ attended: false, approvalTimeoutMs: 1000 });
      const checked = createDeferred();
      const request = askFor("a", { revalidate: () => checked.promise });
      const outcome = session.decide(request, NEVER);
      const response = answer(await session.waiting(), "approve_once");
      const failing = session.gate.respond(response);
      await vi.advanceTimersByTimeAsync(1000);
      session.interactive = true;
      session.gate.attachmentChanged(true);
      session.failure = new CookieError("storage_failed", "the disk is full");
      checked.resolve();
      await expect(failing).rejects.toMatchObject({ code: "storage_failed" });
      session.failure = undefined;
      await vi.advanceTimersByTimeAsync(0);
      expect(session.gate.list("escalated")).toHaveLength(1);
      await session.gate.respond(response);
      expect(await outcome).toMatchObject({ granted: true });
    } finally {
      vi.useRealTimers();
    }
  });

  test("[S-171] the logged request has no expiry", async () => {
    const session = new GateSession({ attended: false, approvalTimeoutMs: 1 });
    await session.decide(askFor(), NEVER);
    expect(session.events[0]?.payload).toMatchObject({
      request: { constraints: { expires_at: null } },
    });
  });
});

describe("repetition", () => {
  test.for<PermissionMode>(["auto_approve", "auto_approve_n", "auto_approve_y", "ask", "yolo"])(
    "[S-176] the fourth identical request is rejected in mode %s",
    async (mode) => {
      const session = new GateSession({ mode: "yolo" });
      for (let turn = 0; turn < 3; turn += 1) {
        expect(await session.decide(askFor(), NEVER)).toMatchObject({ granted: true });
      }
      session.currentMode = mode;
      expect(await session.decide(askFor(), NEVER)).toMatchObject({
        granted: false,
        source: "doom_loop_guard",
        reason: "doom_loop_detected",
      });
      expect(session.types.slice(-4)).toEqual([
        "approval_requested",
        "approval_doom_loop_detected",
        "approval_evaluated",
        "approval_finalized",
      ]);
      expect(session.events.at(-3)?.payload).toMatchObject({ repetitions: 4 });
    },
  );

  test("[S-176] what policy decides outright does not count", async () => {
    const session = new GateSession({ mode: "yolo" });
    for (let turn = 0; turn < 5; turn += 1) {
      await session.decide(askFor("a", { verdict: { effect: "allow", evaluations } }), NEVER);
    }
    expect(await session.decide(askFor(), NEVER)).toMatchObject({ granted: true });
  });
});

describe("restoring", () => {
  test("the approvals are the fold of the events", async () => {
    const session = new GateSession({});
    const outcome = session.decide(askFor(), NEVER);
    const response = answer(await session.waiting(), "approve_once");
    const settled = await session.gate.respond(response);
    await outcome;

    const restored = new GateSession({}).gate;
    for (const event of session.events) restored.apply(event);
    expect(restored.list()).toEqual(session.gate.list());
    expect(restored.list("approved")).toHaveLength(1);
    expect(await restored.respond(response)).toEqual(settled);
  });

  test("an approval that was open when the log ended cannot be answered", async () => {
    const session = new GateSession({});
    const run = new AbortController();
    const outcome = session.decide(askFor(), run.signal);
    const record = await session.waiting();
    const restored = new GateSession({}).gate;
    for (const event of session.events) restored.apply(event);
    await expect(restored.respond(answer(record, "approve_once"))).rejects.toMatchObject({
      code: "approval_not_pending",
    });
    run.abort();
    await outcome;
  });
});

test("[S-167] decision sources and reasons are closed lists", () => {
  expect(DecisionSource.options).toEqual([
    "policy",
    "model",
    "internal_agent",
    "permission_mode",
    "tree_grant",
    "user",
    "doom_loop_guard",
    "system",
  ]);
  expect(DecisionReason.safeParse("because").success).toBe(false);
});
