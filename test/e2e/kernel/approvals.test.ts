import { readFile } from "node:fs/promises";
import {
  ApprovalList,
  type ApprovalRecord,
  ApprovalRespond,
  type ClientKey,
  type ParamsInput,
  SessionPermissionGet,
  SessionPermissionSet,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import type { Answer } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
} from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const ASK = { primary: agentDocument({ ...ALLOW_ALL, write: "ask", bash: "ask" }) };
const DONE = { text: "done" };

type Response = ParamsInput<typeof ApprovalRespond>;

/** A run that waits for its first approval. */
async function startAsking(
  options: {
    commands?: string[];
    calls?: { name: string; arguments: Record<string, string> }[];
    interactive?: boolean;
    config?: string;
    after?: Answer[];
  } = {},
) {
  const { commands = ["echo asked"], interactive = true, config = "", after = [DONE] } = options;
  const { calls = commands.map(bash) } = options;
  const kernel = await openTestKernel({ agents: ASK, config, answers: [{ calls }, ...after] });
  const session = await kernel.createSession({ mode: "ask" });
  const watch = kernel.watch(session, { interactive });
  const runId = await kernel.start(session, "Hi");
  await watch.event("approval_escalated");
  const waiting = async () => list(kernel, session, "escalated");
  const answer = async (changes: Partial<Response> = {}) => {
    const [record] = await waiting();
    if (record === undefined) throw new Error("no approval waits");
    return respond(kernel, session, record, changes);
  };
  return { kernel, session, watch, runId, waiting, answer };
}

async function list(
  kernel: TestKernel,
  session: Response["session_id"],
  status?: ApprovalRecord["status"],
): Promise<ApprovalRecord[]> {
  const { approvals } = await kernel.client.request(ApprovalList, {
    root_session_id: session,
    ...(status && { status }),
  });
  return approvals;
}

async function respond(
  kernel: TestKernel,
  session: Response["session_id"],
  { request }: ApprovalRecord,
  changes: Partial<Response> = {},
): Promise<ApprovalRecord> {
  const { approval } = await kernel.client.request(ApprovalRespond, {
    session_id: session,
    approval_id: request.approval_id,
    request_revision: request.revision,
    operation_fingerprint: request.operation_fingerprint,
    client_response_id: `answer-${request.approval_id}` as ClientKey,
    decision: "approve_once",
    ...changes,
  });
  return approval;
}

describe("answering", () => {
  test("[S-141] [S-169] approvals come one at a time, in model order, and the granted calls run", async () => {
    const { kernel, session, watch, runId, waiting } = await startAsking({
      commands: ["echo 1", "echo 2"],
    });
    const [first] = await waiting();
    expect(await waiting()).toHaveLength(1);
    if (first !== undefined) await respond(kernel, session, first);
    await watch.event("approval_escalated", ({ approval_id }) => {
      return approval_id !== first?.request.approval_id;
    });
    const [second] = await waiting();
    expect(watch.types).not.toContain("tool_call_terminated");
    if (second !== undefined) await respond(kernel, session, second);
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated").map(({ outcome }) => outcome)).toEqual([
      "completed",
      "completed",
    ]);
    expect([first, second].map((record) => record?.request.title)).toEqual([
      expect.stringContaining("echo 1"),
      expect.stringContaining("echo 2"),
    ]);
  });

  test("[T-045] [S-172] a rejection reaches the model with what the person said, and the run goes on", async () => {
    const { kernel, watch, runId, answer } = await startAsking();
    await answer({ decision: "reject", feedback: "use the makefile" });
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    const { error } = watch.payloads("tool_call_terminated")[0] ?? {};
    expect(JSON.parse(error?.message ?? "")).toEqual({
      kind: "tool_denied",
      source: "user",
      reason: "user_rejected",
      feedback: "use the makefile",
    });
    expect(JSON.stringify(kernel.server.requests[1]?.body)).toContain("use the makefile");
  });

  test("a person's cancel fails that call alone", async () => {
    const { watch, runId, answer } = await startAsking();
    await answer({ decision: "cancel" });
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_cancelled")[0]?.reason_code).toBe("user_cancelled");
  });

  test("[S-169] the checks come in their order", async () => {
    const write = { name: "write", arguments: { filePath: "new.txt", content: "new" } };
    const { session, watch, runId, answer } = await startAsking({ calls: [write] });
    const other = "0".repeat(64) as Response["operation_fingerprint"];
    const failures = [
      { approval_id: "01890000-0000-7000-8000-000000000000" as Response["approval_id"] },
      { request_revision: 2, operation_fingerprint: other, decision: "approve_tree" as const },
      { operation_fingerprint: other, decision: "approve_tree" as const },
      { decision: "approve_tree" as const },
    ];
    const codes: unknown[] = [];
    for (const changes of failures) {
      codes.push(await answer(changes).catch(({ code }: { code: string }) => code));
    }
    expect(codes).toEqual([
      "approval_not_found",
      "approval_revision_conflict",
      "operation_fingerprint_mismatch",
      "decision_not_allowed",
    ]);
    await expect(answer({ request_revision: 2 })).rejects.toMatchObject({
      data: {
        session_id: session,
        client_response_id: expect.any(String),
        expected_revision: 2,
        found_revision: 1,
      },
    });
    await answer();
    await watch.end(runId);
  });

  test("[S-169] the same answer again is the same result, another one comes too late", async () => {
    const { kernel, session, watch, runId, waiting } = await startAsking();
    const [record] = await waiting();
    if (record === undefined) throw new Error("no approval waits");
    const first = await respond(kernel, session, record);
    expect(await respond(kernel, session, record)).toEqual(first);
    await expect(
      respond(kernel, session, record, { client_response_id: "late" as ClientKey }),
    ).rejects.toMatchObject({ code: "approval_not_pending" });
    await expect(respond(kernel, session, record, { decision: "reject" })).rejects.toMatchObject({
      code: "idempotency_conflict",
    });
    await watch.end(runId);
  });
});

describe("drift", () => {
  test("[S-145] [T-015] what changed while its approval waited is not done", async () => {
    const kernel = await openTestKernel({
      agents: { primary: agentDocument({ ...ALLOW_ALL, write: "ask" }) },
      answers: [
        { calls: [{ name: "write", arguments: { filePath: "new.txt", content: "the model's" } }] },
        DONE,
      ],
    });
    const session = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Hi");
    await watch.event("approval_escalated");
    const file = await kernel.project.write("new.txt", "somebody else's");
    const [record] = await list(kernel, session);
    if (record !== undefined) await respond(kernel, session, record);
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("operation_changed");
    expect(await readFile(file, "utf8")).toBe("somebody else's");
  });

  test("[S-271] [D-034] a tool that declares it is asked again before the approval counts", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      agents: { primary: agentDocument({ ...ALLOW_ALL, plugin: "ask" }) },
      answers: [{ calls: [{ name: "stage", arguments: { text: "stale" } }] }, DONE],
    });
    const session = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Hi");
    await watch.event("approval_escalated");
    const [record] = await list(kernel, session);
    if (record === undefined) throw new Error("no approval waits");
    await expect(respond(kernel, session, record)).rejects.toMatchObject({
      code: "operation_changed",
    });
    await watch.end(runId);
    expect(watch.types).not.toContain("approval_user_decision_recorded");
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("operation_changed");
  });
});

describe("waiting", () => {
  test("[S-171] [S-270] [D-152] nothing expires while an interactive client is attached", async () => {
    const { kernel, watch, runId, waiting, answer } = await startAsking({
      config: "[approval]\ntimeout_ms = 50\n",
      after: [{ calls: [bash("echo unattended")] }, DONE, DONE],
    });
    // one that began to wait later, with nobody attached, has had its time before this one is looked at
    const later = await kernel.run("Hi", { mode: "ask" });
    expect(later.watch.payloads("approval_finalized")[0]?.decision.status).toBe("expired");
    expect(watch.types).not.toContain("approval_finalized");
    expect((await waiting())[0]?.request.constraints.expires_at).toBeNull();
    await answer();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
  });

  test("[S-171] [D-037] unattended it expires after its time and fails the call as denied", async () => {
    const { watch, runId } = await startAsking({
      interactive: false,
      config: "[approval]\ntimeout_ms = 50\n",
    });
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_finalized")[0]?.decision).toMatchObject({
      status: "expired",
      reason: "approval_expired",
    });
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("permission_denied");
  });

  test("[S-171] a time to answer beyond what a timer holds is long, not over at once", async () => {
    const { watch, runId, answer } = await startAsking({
      config: `[approval]\ntimeout_ms = ${Number.MAX_SAFE_INTEGER}\n`,
      interactive: false,
    });
    await answer();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated")[0]?.outcome).toBe("completed");
  });

  test("[S-270] the deadline begins when the last interactive client leaves", async () => {
    const kernel = await openTestKernel({
      agents: ASK,
      config: "[approval]\ntimeout_ms = 60000\n",
      answers: [{ calls: [bash("echo asked")] }, DONE],
    });
    const session = await kernel.createSession({ mode: "ask" });
    const person = await kernel.connect();
    const attached = person.subscribe(session, { interactive: true });
    await attached.next();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("approval_escalated");
    const expiry = async () => (await list(kernel, session))[0]?.request.constraints.expires_at;
    expect(await expiry()).toBeNull();
    person.close();
    await expect.poll(expiry).not.toBeNull();
    const [record] = await list(kernel, session);
    if (record !== undefined) await respond(kernel, session, record);
    await watch.end(runId);
  });

  test("[S-165] a headless kernel rejects at once what would ask a person", async () => {
    const kernel = await openTestKernel({
      headless: true,
      agents: ASK,
      answers: [{ calls: [bash("echo asked")] }, DONE],
    });
    const { events } = await kernel.run("Hi");
    const decisions = events.flatMap(({ payload }) =>
      payload.type === "approval_finalized" ? [payload.decision] : [],
    );
    expect(decisions).toEqual([
      expect.objectContaining({ status: "rejected", source: "system", reason: "unattended" }),
    ]);
  });
});

describe("modes and rules", () => {
  test("[S-162] a new mode leaves the approval that waits and decides the next one", async () => {
    const { kernel, session, watch, runId, waiting, answer } = await startAsking({
      commands: ["echo 1", "echo 2"],
    });
    await kernel.client.request(SessionSetPermissionMode, { session_id: session, mode: "yolo" });
    expect(await waiting()).toHaveLength(1);
    await answer();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_finalized").map(({ decision }) => decision.reason)).toEqual([
      "user_approved_once",
      "yolo_approved",
    ]);
  });

  test.for([
    ["yolo", "yolo_approved"],
    ["auto_approve_y", "auto_approve_y_approved"],
    ["auto_approve_n", "auto_approve_n_rejected"],
  ] as const)("[S-161] the mode %s decides by itself: %s", async ([mode, reason]) => {
    const kernel = await openTestKernel({
      agents: ASK,
      answers: [{ calls: [bash("echo asked")] }, DONE],
    });
    const { watch } = await kernel.run("Hi", { mode });
    expect(watch.payloads("approval_finalized")[0]?.decision.reason).toBe(reason);
  });

  test("[S-161] the mode is auto_approve after each start of the process", async () => {
    const first = await openTestKernel({ answers: [DONE] });
    const { sessionId } = await first.run("Hi", { mode: "yolo" });
    await first.close();
    const second = await openTestKernel({ on: first });
    const { current_mode } = await second.client.request(SessionPermissionGet, {
      session_id: sessionId,
    });
    expect(current_mode).toBe("auto_approve");
  });

  test("[S-176] the fourth identical request of a run is refused even in yolo", async () => {
    const kernel = await openTestKernel({
      agents: ASK,
      answers: [
        ...Array.from({ length: 4 }, () => ({ calls: [bash("echo again")] })),
        { text: "giving up" },
      ],
    });
    const { end, watch } = await kernel.run("Hi", { mode: "yolo" });
    expect(watch.payloads("approval_finalized").map(({ decision }) => decision.reason)).toEqual([
      "yolo_approved",
      "yolo_approved",
      "yolo_approved",
      "doom_loop_detected",
    ]);
    expect(watch.payloads("approval_doom_loop_detected")[0]?.repetitions).toBe(4);
    expect(end).toMatchObject({ type: "run_completed" });
  });

  test("a rule of the session replaces the one for the same resource and is reported", async () => {
    const kernel = await openTestKernel({ answers: [DONE] });
    const session = await kernel.createSession();
    const set = (effect: "allow" | "deny") =>
      kernel.client.request(SessionPermissionSet, {
        session_id: session,
        action: "bash",
        resource: "git *",
        effect,
      });
    await set("allow");
    await set("deny");
    await set("deny");
    const { watch } = await kernel.run("Hi", { session });
    expect(watch.payloads("session_permission_overlay_set")).toHaveLength(2);
    const { permissions } = await kernel.client.request(SessionPermissionGet, {
      session_id: session,
    });
    expect(permissions.find(({ action }) => action === "bash")?.patterns).toContainEqual({
      resource: "git *",
      effect: "deny",
      source: "session_overlay",
    });
  });
});
