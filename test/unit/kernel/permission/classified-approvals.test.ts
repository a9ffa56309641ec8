import type { PermissionMode, SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test, vi } from "vitest";
import type { Classification } from "../../../../kernel/src/permission/permission-mode.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";
import { askFor, GateSession, NEVER } from "./approval-fixtures.ts";

const evaluations = askFor().verdict.evaluations;
const AUTO: readonly PermissionMode[] = ["auto_approve", "auto_approve_n", "auto_approve_y"];

/** One decision with a classifier that says `classification`. */
async function decideBy(
  mode: PermissionMode,
  classification: Classification,
  options: { headless?: boolean; request?: Parameters<typeof askFor>[1] } = {},
) {
  const classify = vi.fn(() => Promise.resolve(classification));
  const session = new GateSession({ mode, headless: options.headless ?? false });
  const outcome = await session.decide(askFor("a", { classify, ...options.request }), NEVER);
  const [evaluated] = session.gate.list().map((record) => record.internal_decision);
  return { outcome, session, classify, evaluated };
}

describe("the classifier", () => {
  test.for(AUTO)("[S-161] [S-163] allows in mode %s", async (mode) => {
    const { outcome, session, evaluated } = await decideBy(mode, "allow");
    const allowed = { source: "internal_agent", reason: "internal_agent_allowed" };
    expect(outcome).toEqual({ granted: true, ...allowed });
    expect(evaluated).toMatchObject({ status: "approved", ...allowed });
    expect(session.types).toEqual([
      "approval_requested",
      "approval_evaluated",
      "approval_finalized",
    ]);
  });

  test.for(AUTO)("[S-161] [S-163] refuses in mode %s, and the run goes on", async (mode) => {
    const { outcome, evaluated } = await decideBy(mode, "deny", { headless: true });
    const denied = { source: "internal_agent", reason: "internal_agent_denied" };
    expect(outcome).toMatchObject({ granted: false, ...denied, escalated: false });
    expect(evaluated).toMatchObject({ status: "rejected", ...denied });
  });

  test("[S-161] leaves a call to the user in mode auto_approve", async () => {
    const classify = () => Promise.resolve("ask" as const);
    const session = new GateSession({ mode: "auto_approve" });
    const outcome = session.decide(askFor("a", { classify }), NEVER);
    const record = await session.waiting();
    expect(record.internal_decision).toMatchObject({
      status: "escalated",
      source: "internal_agent",
      reason: "escalated",
    });
    await session.gate.respond({
      session_id: record.session_id as SessionId,
      approval_id: record.request.approval_id,
      request_revision: 1,
      operation_fingerprint: record.request.operation_fingerprint,
      client_response_id: "one",
      decision: "approve_once",
    });
    expect(await outcome).toMatchObject({ granted: true, reason: "user_approved_once" });
  });

  test("[S-161] leaves it to nobody in mode auto_approve_n, which the record shows", async () => {
    const { outcome, session } = await decideBy("auto_approve_n", "ask");
    expect(outcome).toEqual({
      granted: false,
      source: "permission_mode",
      reason: "auto_approve_n_rejected",
      feedback: expect.stringContaining("mode"),
      escalated: true,
    });
    expect(session.types).toEqual([
      "approval_requested",
      "approval_evaluated",
      "approval_escalated",
      "approval_finalized",
    ]);
  });

  test("[S-161] leaves it to the mode auto_approve_y, which approves once", async () => {
    const { outcome, session } = await decideBy("auto_approve_y", "ask");
    expect(outcome).toMatchObject({ granted: true, reason: "auto_approve_y_approved" });
    expect(session.types).not.toContain("tree_approval_grant_committed");
  });

  test("[S-165] [B137] leaves a headless call to nobody, so it is rejected at once", async () => {
    const { outcome } = await decideBy("auto_approve", "ask", { headless: true });
    expect(outcome).toMatchObject({ source: "system", reason: "unattended", escalated: true });
  });

  test.for<PermissionMode>(["ask", "yolo"])("[S-161] is not asked in mode %s", async (mode) => {
    const { classify, session } = await decideBy(mode, "deny", { headless: true });
    expect(classify).not.toHaveBeenCalled();
    expect(session.types[0]).toBe("approval_requested");
  });

  test("[S-163] is not asked about what policy decides", async () => {
    for (const effect of ["allow", "deny"] as const) {
      const request = { verdict: { effect, evaluations } };
      const { classify, session } = await decideBy("auto_approve", "deny", { request });
      expect(classify).not.toHaveBeenCalled();
      expect(session.types).toEqual([]);
    }
  });

  test("[S-163] [S-176] is not asked about a call that comes again and again", async () => {
    const classify = vi.fn(() => Promise.resolve("allow" as const));
    const session = new GateSession({ mode: "auto_approve" });
    const outcomes = [];
    for (let count = 0; count < 4; count += 1) {
      outcomes.push(await session.decide(askFor("a", { classify }), NEVER));
    }
    expect(outcomes.map(({ granted }) => granted)).toEqual([true, true, true, false]);
    expect(outcomes.at(-1)).toMatchObject({ reason: "doom_loop_detected" });
    expect(classify).toHaveBeenCalledTimes(3);
  });

  test("[S-163] is asked for an approval that the model wants although policy allows", async () => {
    const { outcome, classify } = await decideBy("auto_approve", "deny", {
      request: { trigger: "model_tool_approval", verdict: { effect: "allow", evaluations } },
    });
    expect(classify).toHaveBeenCalledTimes(1);
    expect(outcome).toMatchObject({ reason: "internal_agent_denied" });
  });

  test.for<PermissionMode>(["yolo", "ask"])(
    "[S-162] has its say although the mode becomes %s while it thinks",
    async (mode) => {
      const thought = createDeferred<Classification>();
      const session = new GateSession({ mode: "auto_approve" });
      const outcome = session.decide(askFor("a", { classify: () => thought.promise }), NEVER);
      session.currentMode = mode;
      thought.resolve("deny");
      expect(await outcome).toMatchObject({ granted: false, reason: "internal_agent_denied" });
    },
  );

  test.for<Classification>(["allow", "ask"])(
    "a run that is cancelled meanwhile gets nothing from its %s",
    async (classification) => {
      const run = new AbortController();
      const session = new GateSession({ mode: "auto_approve" });
      const classify = () => {
        run.abort();
        return Promise.resolve(classification);
      };
      const outcome = await session.decide(askFor("a", { classify }), run.signal);
      expect(outcome).toMatchObject({ granted: false, reason: "request_cancelled" });
      expect(session.types).toEqual([
        "approval_requested",
        "approval_cancelled",
        "approval_finalized",
      ]);
    },
  );
});
