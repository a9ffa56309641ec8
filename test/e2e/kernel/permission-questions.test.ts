import { join } from "node:path";
import { ApprovalRespond, PluginsStatus, RunCancel } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { trustedPlugin } from "../../support/fixture-plugin.ts";
import { pick } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";

type Answer = Record<string, unknown>;

const METHOD = "host/permission/ask";
const question = (label = "show more", action = "plugin") => ({
  method: METHOD,
  params: { resources: [{ action, label }], reason: "the rest is elsewhere" },
});
const show = (args: object) => ({ calls: [{ name: "show", arguments: args }] });
const config = (keys = "") => `${trustedPlugin("gallery")}\n${keys}`;

/** One call that asks these questions, under this mode. */
async function asked(
  questions: readonly object[],
  options: TestKernelOptions & { mode?: "yolo" | "auto_approve_n" | "auto_approve_y" | "ask" } = {},
) {
  const { mode = "yolo", ...rest } = options;
  const kernel = await openTestKernel({
    config: config(),
    ...rest,
    answers: [show({ ask: questions }), { text: "ok" }],
  });
  const { watch, end } = await kernel.run("Hi", { mode });
  const output = watch.payloads("tool_call_terminated")[0]?.result?.output;
  return { kernel, watch, end, answers: JSON.parse(output ?? "null") as Answer[] | null };
}

/** A call whose question a person has before them. */
async function pending(options: { keys?: string; args?: object } = {}) {
  const kernel = await openTestKernel({
    config: config(options.keys),
    answers: [show({ ask: [question()], ...options.args })],
  });
  const session = await kernel.createSession({ mode: "ask" });
  const watch = kernel.watch(session, { interactive: true });
  const runId = await kernel.start(session, "Hi");
  const { payload } = await watch.event("approval_escalated");
  const respond = (decision: "approve_once" | "reject", feedback?: string) => {
    const request = watch.payloads("approval_requested")[0]?.request;
    if (request === undefined) throw new Error("nothing was asked");
    return kernel.client.request(ApprovalRespond, {
      session_id: session,
      approval_id: payload.approval_id,
      client_response_id: "one",
      request_revision: request.revision,
      operation_fingerprint: request.operation_fingerprint,
      decision,
      ...(feedback !== undefined && { feedback }),
    });
  };
  return { kernel, watch, runId, respond };
}

describe("a call that asks for more", () => {
  test.for([
    ["yolo", { granted: true, source: "policy" }],
    ["auto_approve_y", { granted: true, source: "permission_mode" }],
    ["auto_approve_n", { granted: false, source: "permission_mode" }],
  ] as const)("[E-120] mode %s answers it", async ([mode, answer]) => {
    const { answers, watch } = await asked([question()], { mode });
    expect(answers?.[0]).toMatchObject(answer);
    const request = watch.payloads("approval_requested")[0]?.request;
    expect(request).toMatchObject({
      trigger: "model_tool_approval",
      tool: "show",
      title: "show: the rest is elsewhere",
      detail: "plugin show more",
      operation: { resources: [{ capability: "show:plugin", source: "model_request" }] },
    });
  });

  test("[E-120] a person's answer comes back, with their words", async () => {
    const { kernel, watch, runId, respond } = await pending();
    kernel.server.enqueue({ text: "ok" });
    await respond("reject", "not today");
    await watch.end(runId);
    const output = watch.payloads("tool_call_terminated")[0]?.result?.output ?? "null";
    expect(JSON.parse(output)).toEqual([{ granted: false, source: "user", feedback: "not today" }]);
  });

  test("[E-120] a rule that denies is the answer, and nobody is asked", async () => {
    const rules = { ...ALLOW_ALL, plugin: { "*": "allow", "show more": "deny" } };
    const { answers, watch } = await asked([question(), question("show less")], {
      agents: { primary: agentDocument(rules) },
    });
    expect(answers).toMatchObject([
      { granted: false, source: "policy" },
      { granted: true, source: "policy" },
    ]);
    expect(watch.payloads("approval_requested")).toHaveLength(1);
  });

  test("[E-120] the fourth equal question is refused in every mode", async () => {
    const { answers } = await asked(Array(4).fill(question()));
    expect(answers?.map(({ granted }) => granted)).toEqual([true, true, true, false]);
    expect(answers?.[3]).toMatchObject({ source: "doom_loop_guard" });
  });

  test("[E-120] what the tool does not declare cannot be asked for", async () => {
    const { answers } = await asked([
      question("a.txt", "read"),
      question("elsewhere"),
      question("showing"),
    ]);
    expect(answers).toMatchObject([
      { code: "invalid_params", data: { field: "resources.0.action" } },
      { code: "invalid_params", data: { field: "resources.0.label" } },
      { code: "invalid_params", data: { field: "resources.0.label" } },
    ]);
  });

  test("[E-120] where nobody can answer it is refused at once, and the run ends as after any such refusal", async () => {
    const { watch, end } = await asked([question()], { mode: "ask", headless: true });
    expect(watch.payloads("approval_finalized")[0]?.decision).toMatchObject({
      status: "rejected",
      source: "system",
      reason: "unattended",
    });
    expect(end).toMatchObject({ type: "run_cancelled", reason: "permission" });
  });

  test("[E-120] what is granted is on record before the plugin learns of it", async () => {
    const kernel = await openTestKernel({ config: config() });
    const folder = join(kernel.project.stateDir, "sessions");
    const look = { method: "look", params: { folder, words: '"approval_finalized"' } };
    kernel.server.enqueue(show({ ask: [look, question(), look] }), { text: "ok" });
    const { watch } = await kernel.run("Hi", { mode: "yolo" });
    const output = watch.payloads("tool_call_terminated")[0]?.result?.output ?? "null";
    expect(JSON.parse(output)).toMatchObject([
      { found: false },
      { granted: true },
      { found: true },
    ]);
  });
});

describe("a question that stands open", () => {
  test("[E-120] a cancelled run takes it back", async () => {
    const { kernel, watch, runId } = await pending();
    await kernel.client.request(RunCancel, { run_id: runId });
    expect(await watch.end(runId)).toMatchObject({ type: "run_cancelled" });
    expect(watch.payloads("approval_cancelled")).toMatchObject([
      { reason_code: "request_cancelled" },
    ]);
    expect(watch.payloads("tool_call_terminated")[0]?.outcome).toBe("cancelled");
  });

  test("[E-120] a call that ends without its answer takes it back", async () => {
    const { kernel, watch, runId } = await pending({ args: { leave: "leave-now" } });
    kernel.server.enqueue({ text: "ok" });
    await kernel.project.write("leave-now", "");
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_cancelled")).toHaveLength(1);
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toBe("left");
  });

  test("[E-120] a plugin that dies takes it back", async () => {
    const { kernel, watch, runId } = await pending();
    kernel.server.enqueue({ text: "ok" });
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const pid = plugins.find(({ plugin }) => plugin === "gallery")?.pid;
    if (!pid) throw new Error("the plugin does not run");
    process.kill(pid, "SIGKILL");
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("approval_cancelled")).toHaveLength(1);
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("plugin_crashed");
  });

  test("[E-107] it takes nothing of the call's time, which goes on once it is answered", async () => {
    const { kernel, watch, runId, respond } = await pending({
      keys: "tool_timeout_ms = 1500",
      args: { hang: true },
    });
    // Others of the same plugin begin later and have as long; by their end the first had its time and clean-up, too.
    kernel.server.enqueue(...Array.from({ length: 3 }, () => show({ hang: true })), { text: "ok" });
    const other = await kernel.run("Hi", { mode: "yolo" });
    const codes = other.watch.payloads("tool_call_terminated").map(({ error }) => error?.code);
    expect(codes).toEqual(["timeout", "timeout", "timeout"]);
    expect(watch.payloads("tool_call_terminated")).toEqual([]);
    kernel.server.enqueue({ text: "ok" });
    await respond("approve_once");
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated")[0]?.error).toMatchObject({ code: "timeout" });
    const sent = pick(kernel.server.requests.at(-1)?.body, "messages", -1, "content");
    expect(String(sent)).toContain("timeout");
  });
});
