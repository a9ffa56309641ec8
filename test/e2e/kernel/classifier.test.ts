import {
  ApprovalList,
  ApprovalRespond,
  type ClientKey,
  RunCancel,
  SessionPermissionGet,
  SessionResume,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createGate } from "../../support/gate.ts";
import { delivered, writeHookPlugins } from "../../support/hook-plugin.ts";
import { internalDocument } from "../../support/internal-agent.ts";
import { type Answer, pick } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";
import { reopenAsKilled } from "../../support/reopen-as-killed.ts";
import { SECOND_MODEL, secondModel } from "../../support/second-model.ts";

const SECOND = "custom.test/second";
const bash = (command: string) => ({ calls: [{ name: "bash", arguments: { command } }] });
const ASKING = agentDocument({ ...ALLOW_ALL, bash: "ask" });
const ALLOW: Answer = { text: '{"decision":"allow"}' };
const DONE: Answer = { text: "done" };
/** Retries come without a wait that anybody would notice. */
const RETRIES =
  "[model_retry]\nstandard_retries = 1\noverload_retries = 1\nbackoff_ceiling_ms = 1\n";

/** A headless kernel whose model asks for one command that a rule wants approved. */
async function openAsking(verdict: Answer, options: TestKernelOptions = {}) {
  const { agents, ...rest } = options;
  const kernel = await openTestKernel({
    headless: true,
    agents: { primary: ASKING, ...agents },
    answers: [bash("echo classified"), DONE],
    config: RETRIES,
    ...rest,
  });
  kernel.server.answerAsides("approval", verdict);
  return kernel;
}

describe("a verdict of the classifier", () => {
  test("[S-161] [S-163] [S-225] allow lets a run go on that nobody watches", async () => {
    const kernel = await openAsking(ALLOW);
    const { end, watch } = await kernel.run("Please say it");
    expect(end).toMatchObject({ type: "run_completed" });
    const [call] = watch.payloads("tool_call_terminated");
    expect(call).toMatchObject({ outcome: "completed" });
    expect(call?.result?.output).toContain("classified");

    const { types } = watch;
    const since = types.slice(types.indexOf("approval_requested"));
    expect(since.slice(0, since.indexOf("approval_finalized") + 1)).toEqual([
      "approval_requested",
      "internal_agent_started",
      "internal_agent_usage_recorded",
      "internal_agent_completed",
      "approval_evaluated",
      "approval_finalized",
    ]);
    expect(watch.payloads("approval_evaluated")[0]?.decision).toMatchObject({
      status: "approved",
      source: "internal_agent",
      reason: "internal_agent_allowed",
    });
    expect(types).not.toContain("tree_approval_grant_committed");
    const { body } = kernel.server.asides[0] ?? {};
    expect(pick(body, "tools")).toBeUndefined();
    expect(JSON.parse(String(pick(body, "messages", 1, "content")))).toEqual({
      latest_user_message: "Please say it",
      tool: "bash",
      parameters: { command: "echo classified" },
    });
    expect(pick(body, "messages")).toHaveLength(2);
  });

  test("[S-161] [S-177] it is asked anew for the same call", async () => {
    const kernel = await openAsking(ALLOW, {
      answers: [bash("echo same"), bash("echo same"), DONE],
    });
    const { end } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_completed" });
    expect(kernel.server.asides).toHaveLength(2);
  });

  test("[S-161] [S-172] deny fails the call alone, and the model is told", async () => {
    const kernel = await openAsking({ text: '{"decision":"deny"}' });
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_completed" });
    const [call] = watch.payloads("tool_call_terminated");
    expect(call?.outcome).toBe("failed");
    expect(JSON.parse(call?.error?.message ?? "")).toMatchObject({
      kind: "tool_denied",
      source: "internal_agent",
      reason: "internal_agent_denied",
    });
    expect(JSON.stringify(kernel.server.requests[1]?.body)).toContain("internal_agent_denied");
  });

  test("[S-161] ask goes to a person where there is one, whose answer counts", async () => {
    const kernel = await openAsking({ text: '{"decision":"ask"}' }, { headless: false });
    const session = await kernel.createSession();
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Hi");
    const { payload } = await watch.event("approval_escalated");
    const { approvals } = await kernel.client.request(ApprovalList, { root_session_id: session });
    const [record] = approvals;
    expect(record?.internal_decision).toMatchObject({
      status: "escalated",
      source: "internal_agent",
      reason: "escalated",
    });
    await kernel.client.request(ApprovalRespond, {
      session_id: session,
      approval_id: payload.approval_id,
      request_revision: 1,
      operation_fingerprint: record?.request.operation_fingerprint ?? "",
      client_response_id: "yes" as ClientKey,
      decision: "approve_once",
    });
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_finalized")[0]?.decision.reason).toBe("user_approved_once");
  });

  test("[S-163] is not asked for where a person has granted the call to the whole tree", async () => {
    const granted = createGate();
    const kernel = await openAsking(
      { text: '{"decision":"deny"}' },
      {
        headless: false,
        answers: [bash("echo x"), { ...bash("echo x"), until: granted.opened }, DONE],
      },
    );
    const session_id = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session_id, { interactive: true });
    const runId = await kernel.start(session_id, "Hi");
    const { payload } = await watch.event("approval_requested");
    await watch.event("approval_escalated");
    await kernel.client.request(ApprovalRespond, {
      session_id,
      approval_id: payload.request.approval_id,
      request_revision: 1,
      operation_fingerprint: payload.request.operation_fingerprint,
      client_response_id: "tree" as ClientKey,
      decision: "approve_tree",
    });
    await kernel.client.request(SessionSetPermissionMode, { session_id, mode: "auto_approve" });
    granted.open();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_finalized").map(({ decision }) => decision.reason)).toEqual([
      "user_approved_tree",
      "tree_grant_matched",
    ]);
    expect(kernel.server.asides).toEqual([]);
  });

  test("an answer to an approval that the classifier still thinks about is refused", async () => {
    const thought = createGate();
    const kernel = await openAsking(
      { text: '{"decision":"deny"}', until: thought.opened },
      { headless: false },
    );
    const session = await kernel.createSession();
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Hi");
    const { payload } = await watch.event("approval_requested");
    await watch.event("internal_agent_started");
    const answer = kernel.client.request(ApprovalRespond, {
      session_id: session,
      approval_id: payload.request.approval_id,
      request_revision: 1,
      operation_fingerprint: payload.request.operation_fingerprint,
      client_response_id: "early" as ClientKey,
      decision: "approve_once",
    });
    await expect(answer).rejects.toMatchObject({ code: "approval_not_pending" });
    thought.open();
    await watch.end(runId);
    expect(watch.payloads("approval_finalized")[0]?.decision.reason).toBe("internal_agent_denied");
  });

  test("[S-148] a cancelled run cancels classifier and approval, and nothing runs", async () => {
    const never = createGate();
    const kernel = await openAsking({ ...ALLOW, until: never.opened });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const run_id = await kernel.start(session, "Hi");
    await watch.event("internal_agent_started");
    await kernel.client.request(RunCancel, { run_id });
    expect(await watch.end(run_id)).toMatchObject({ type: "run_cancelled" });
    expect(watch.types).toContain("internal_agent_cancelled");
    expect(watch.payloads("approval_cancelled")[0]?.reason_code).toBe("request_cancelled");
    expect(watch.payloads("tool_call_terminated")[0]?.outcome).not.toBe("completed");
  });
});

test("[S-096] [S-098] a kernel that died while the classifier thought leaves nothing approved", async () => {
  const never = createGate();
  const first = await openAsking({ ...ALLOW, until: never.opened }, { headless: false });
  const session_id = await first.createSession();
  const before = first.watch(session_id);
  await first.start(session_id, "Hi");
  const second = await reopenAsKilled(first, before.event("internal_agent_started"));
  await second.client.request(SessionResume, { session_id });
  const watch = second.watch(session_id);
  const { payload } = await watch.event("approval_finalized");
  expect(payload.decision).toMatchObject({
    status: "cancelled",
    reason: "prepared_capability_lost",
  });
  expect(watch.types.slice(-5)).toEqual([
    "internal_agent_interrupted",
    "run_interrupted",
    "tool_call_terminated",
    "approval_cancelled",
    "approval_finalized",
  ]);
  expect(watch.payloads("internal_agent_interrupted")[0]?.reason).toBe("daemon restart");
});

test("[S-161] a mode is of this process alone", async () => {
  const first = await openTestKernel({ answers: [DONE] });
  const { sessionId } = await first.run("Hi", { mode: "yolo" });
  const modeOf = async ({ client }: typeof first) =>
    (await client.request(SessionPermissionGet, { session_id: sessionId })).current_mode;
  expect(await modeOf(first)).toBe("yolo");
  await first.close();
  const second = await openTestKernel({ on: first });
  await second.client.request(SessionResume, { session_id: sessionId });
  expect(await modeOf(second)).toBe("auto_approve");
});

describe("what is no verdict leaves the call to the user, of whom a headless run has none", () => {
  const failing = (code: string) => ({ code, type: "internal_agent_failed" });
  test.for<[string, Answer, ReturnType<typeof failing> | null]>([
    ["prose", { text: 'It is safe: {"decision":"allow"}' }, null],
    ["a second member", { text: '{"decision":"allow","why":"safe"}' }, null],
    ["two answers", { text: '{"decision":"deny"}{"decision":"allow"}' }, null],
    ["nothing", { text: "" }, failing("invalid_non_text_output")],
    ["reasoning alone", { reasoning: '{"decision":"allow"}' }, failing("invalid_non_text_output")],
    [
      "a tool call",
      { text: '{"decision":"allow"}', calls: [{ name: "bash", arguments: { command: "id" } }] },
      failing("invalid_non_text_output"),
    ],
    [
      "more than the limit",
      { text: `${" ".repeat(9000)}{"decision":"allow"}` },
      failing("output_too_large"),
    ],
    ["an error", { status: 400, body: { error: { message: "no" } } }, failing("model_failure")],
    ["a broken connection", { events: ["data: {"], end: "cut" }, failing("model_failure")],
  ])("[S-177] [C-094] [C-096] %s", async ([, verdict, failure]) => {
    const kernel = await openAsking(verdict);
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_cancelled", reason: "permission" });
    expect(watch.payloads("approval_finalized")[0]?.decision.reason).toBe("unattended");
    expect(watch.payloads("approval_evaluated")[0]?.decision).toMatchObject({
      status: "escalated",
      source: "internal_agent",
    });
    const failed = watch.payloads("internal_agent_failed").map((payload) => payload.failure.code);
    expect(failed).toEqual(failure === null ? [] : [failure.code]);
  });

  test("[S-225] reasoning beside the verdict is ignored", async () => {
    const kernel = await openAsking({ reasoning: "Hm. Deny?", ...ALLOW });
    expect((await kernel.run("Hi")).end).toMatchObject({ type: "run_completed" });
  });

  test("[S-226] [S-177] none within the timeout", async () => {
    const never = createGate();
    const kernel = await openAsking(
      { ...ALLOW, until: never.opened },
      { agents: { approval: internalDocument({ limits: { timeout_ms: 40 } }) } },
    );
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_cancelled", reason: "permission" });
    expect(watch.payloads("internal_agent_failed")[0]?.failure.code).toBe("timeout");
  });

  test("[S-227] [S-177] no model that could answer", async () => {
    const kernel = await openAsking(ALLOW, {
      agents: { approval: internalDocument({ models: ["custom.test/gone"] }) },
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("approval_finalized")[0]?.decision.reason).toBe("unattended");
    expect(watch.payloads("internal_agent_started")[0]?.backend.type).toBe("builtin");
    expect(watch.payloads("internal_agent_failed")[0]?.failure.code).toBe("agent_unavailable");
    expect(kernel.server.asides).toEqual([]);
  });
});

describe("the models of an internal agent", () => {
  test("[C-093] [C-095] those of its document, the unavailable and too small ones skipped", async () => {
    const kernel = await openAsking(ALLOW, {
      config: `${RETRIES}${secondModel(1000)}`,
      answers: [bash(`echo ${"x".repeat(4000)}`), DONE],
      agents: {
        approval: internalDocument({ models: ["custom.test/gone", SECOND, "${parent_model}"] }),
      },
    });
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("internal_agent_fallback")).toMatchObject([
      {
        from: { model: SECOND },
        to: { model: "custom.test/scripted" },
        failure: { code: "input_too_large" },
        attempts: 1,
      },
    ]);
    expect(kernel.server.asides.map(({ body }) => pick(body, "model"))).toEqual(["scripted"]);
    expect(pick(kernel.server.asides[0]?.body, "messages", 0, "content")).toMatch(
      /in words of our own/,
    );
  });

  test("[C-095] that of the run is the one which the run has fallen back to", async () => {
    const kernel = await openAsking(ALLOW, {
      config: `${RETRIES}${SECOND_MODEL}`,
      agents: {
        primary: agentDocument(
          { ...ALLOW_ALL, bash: "ask" },
          { models: ["custom.test/scripted", SECOND] },
        ),
      },
      answers: [{ status: 401, body: {} }, bash("echo x"), DONE],
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("internal_agent_started")[0]?.backend).toEqual({
      type: "model",
      resolved_model: { model: SECOND, variant: null },
    });
    const asked = kernel.server.asides.filter(({ aside }) => aside === "approval");
    expect(asked.map(({ body }) => pick(body, "model"))).toEqual(["second"]);
  });

  test("[S-130] [S-226] are retried as those of a run, within the caps of the agent", async () => {
    let asked = 0;
    const kernel = await openAsking(() => {
      asked += 1;
      return asked === 1 ? { status: 503, body: {} } : ALLOW;
    });
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_completed" });
    expect(kernel.server.asides).toHaveLength(2);
    expect(watch.types).not.toContain("internal_agent_fallback");
    const { body } = kernel.server.asides[1] ?? {};
    expect(pick(body, "max_completion_tokens") ?? pick(body, "max_tokens")).toBe(2048);
  });

  test("[S-233] what they cost is stamped once, to the agent", async () => {
    const kernel = await openAsking(
      { ...ALLOW, usage: { input: 100, output: 10 } },
      {
        config: `${RETRIES}[pricing.models."custom.test/scripted"]\ninput_per_million_usd = "2"\noutput_per_million_usd = "3"\n`,
      },
    );
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("internal_agent_usage_recorded")).toMatchObject([
      {
        kind: "approval",
        agent_id: "approval",
        resolved_model: kernel.selection.model,
        usage: { input_tokens: 100, output_tokens: 10 },
        estimated_cost_pico_usd: 230_000_000,
      },
    ]);
  });

  test("[S-225] [C-094] [E-169] no plugin sees or changes what they are asked", async () => {
    const kernel = await openAsking(ALLOW, {
      prepare: (project) =>
        writeHookPlugins(project, [
          {
            name: "nosy",
            hooks: {
              model_before_request: () => ({}),
              provider_before_headers: () => ({ set: { "x-nosy": "1" } }),
              provider_before_request: () => ({}),
              provider_after_response: () => ({}),
              message_end: () => ({}),
            },
          },
        ]),
    });
    const { end } = await kernel.run("Hi");
    expect(end).toMatchObject({ type: "run_completed" });
    const hooks = (await delivered(kernel.project)).map(({ hook }) => hook);
    expect(hooks.filter((hook) => hook === "model_before_request")).toHaveLength(2);
    expect(hooks.filter((hook) => hook === "message_end")).toHaveLength(2);
    expect(kernel.server.requests.map(({ headers }) => headers["x-nosy"])).toEqual(["1", "1"]);
    expect(kernel.server.asides.map(({ headers }) => headers["x-nosy"])).toEqual([undefined]);
  });
});
