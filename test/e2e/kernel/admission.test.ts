import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type RunSelection,
  SessionCreate,
  SessionGet,
  SessionList,
  SessionResume,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { pick, providerToml } from "../../support/model-server.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";
import { SECOND_MODEL } from "../../support/second-model.ts";
import { payloadsOf } from "../../support/session-watch.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const model = (id: string) => ({ model: `custom.test/${id}`, variant: null });
const select = (agent: string, id: string): RunSelection => ({ agent, model: model(id) });

describe("run.start", () => {
  test("[S-122] the same key with the same request is the same run, without a new event", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "one" }] });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi", { key: "key" });
    await watch.end(runId);
    const before = watch.types.length;
    expect(await kernel.start(session, "Hi", { key: "key" })).toBe(runId);
    const { session: meta } = await kernel.client.request(SessionGet, { session_id: session });
    expect(meta.last_event_seq).toBe(before);
    expect(kernel.server.requests).toHaveLength(1);
  });

  test("[S-122] the same key with another request is a conflict that names both", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "one" }] });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    await watch.end(await kernel.start(session, "Hi", { key: "key" }));
    await expect(kernel.start(session, "Other", { key: "key" })).rejects.toMatchObject({
      code: "idempotency_conflict",
      data: { session_id: session, client_run_id: "key" },
    });
  });

  test("[S-122] the key still counts after a restart", async () => {
    const first = await openTestKernel({ answers: [{ text: "one" }] });
    const session = await first.createSession();
    const watch = first.watch(session);
    const runId = await first.start(session, "Hi", { key: "key" });
    await watch.end(runId);
    await first.close();
    const second = await openTestKernel({ on: first });
    expect(await second.start(session, "Hi", { key: "key" })).toBe(runId);
  });

  test("[S-022] [S-121] [S-123] a repeated key is known before the session counts as running, another is refused", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "x", until: new Promise(() => undefined) }],
    });
    const session = await kernel.createSession();
    const runId = await kernel.start(session, "Hi", { key: "key" });
    expect(await kernel.start(session, "Hi", { key: "key" })).toBe(runId);
    await expect(kernel.start(session, "Hi", { key: "other" })).rejects.toMatchObject({
      code: "session_running",
    });
  });

  test("[S-121] the first events of a run stand in the order of admission", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "ok" }],
      prepare: (project) => project.write("AGENTS.md", "Be brief."),
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.types.slice(0, 4)).toEqual([
      "session_created",
      "run_started",
      "agent_md_loaded",
      "user_input_submitted",
    ]);
  });

  test("[S-123] who has seen the end of a run can start the next one at once", async () => {
    const kernel = await openTestKernel();
    kernel.server.otherwise({ text: "ok" });
    const session = await kernel.createSession();
    const ended: string[] = [];
    for await (const news of kernel.client.subscribe(session)) {
      if (news.type !== "event") continue;
      const { type } = news.event.payload;
      if (type === "run_completed") ended.push(type);
      if (ended.length === 20) break;
      if (type === "session_created" || type === "run_completed") await kernel.start(session, "Hi");
    }
    expect(ended).toHaveLength(20);
  });

  test("two requests at once start one run", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "x", until: new Promise(() => undefined) }],
    });
    const session = await kernel.createSession();
    const starts = await Promise.allSettled([
      kernel.start(session, "Hi", { key: "a" }),
      kernel.start(session, "Hi", { key: "b" }),
    ]);
    expect(starts.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });
});

describe("frozen bindings", () => {
  test("[S-125] [S-126] what is written to the configuration during a run does not reach it", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const kernel = await openTestKernel({
      answers: [
        { calls: [bash("echo one")] },
        { text: "thinking", calls: [bash("echo two")], until: held },
        { text: "done" },
      ],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("tool_call_terminated");
    await kernel.project.writeState("config.toml", "this is no configuration");
    await kernel.project.writeState("agents/primary.md", agentDocument({ bash: "deny" }));
    release();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated").map(({ outcome }) => outcome)).toEqual([
      "completed",
      "completed",
    ]);
    const systems = kernel.server.requests.map(({ body }) => pick(body, "messages", 0, "content"));
    expect(new Set(systems).size).toBe(1);
  });

  test("[S-127] the chain begins at the selected model", async () => {
    const kernel = await openTestKernel({
      config: SECOND_MODEL,
      agents: {
        primary: agentDocument(ALLOW_ALL, {
          models: ["custom.test/scripted", "custom.test/second"],
        }),
      },
      answers: [{ text: "ok" }],
    });
    const { events } = await kernel.run("Hi", { selection: select("primary", "second") });
    const [started] = payloadsOf(events, "run_started");
    expect(started?.agent).toMatchObject({
      fallback_chain: [model("scripted"), model("second")],
      selected_suffix_start: 1,
    });
    expect(started?.selected_suffix.map(({ selection }) => selection)).toEqual([model("second")]);
    expect(pick(kernel.server.requests[0]?.body, "model")).toBe("second");
  });

  test("[S-127] a selected model outside the chain goes in front of it", async () => {
    const kernel = await openTestKernel({ config: SECOND_MODEL, answers: [{ text: "ok" }] });
    const { events } = await kernel.run("Hi", { selection: select("primary", "second") });
    const [started] = payloadsOf(events, "run_started");
    expect(started?.agent.fallback_chain).toEqual([model("second"), model("scripted")]);
  });

  test("[S-127] models of the chain that are not available are left out, also the selected one", async () => {
    const kernel = await openTestKernel({
      config: SECOND_MODEL,
      agents: {
        primary: agentDocument(ALLOW_ALL, {
          models: ["custom.test/scripted", "custom.test/gone", "custom.test/second"],
        }),
      },
      answers: [{ text: "ok" }],
    });
    const { events } = await kernel.run("Hi", { selection: select("primary", "gone") });
    const [started] = payloadsOf(events, "run_started");
    expect(started?.selected_suffix.map(({ selection }) => selection)).toEqual([model("second")]);
  });

  test("[S-127] nothing left behind the selected model is no_runnable_model", async () => {
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument(ALLOW_ALL, { models: ["custom.test/scripted", "custom.test/gone"] }),
      },
    });
    await expect(
      kernel.client.request(SessionCreate, { selection: select("primary", "gone") }),
    ).rejects.toMatchObject({ code: "no_runnable_model" });
  });

  test.for([
    ["sub", "ineligible_agent"],
    ["off", "disabled_agent"],
    ["nobody", "ineligible_agent"],
    ["default", "ineligible_agent"],
  ] as const)("the agent %s cannot start a session: %s", async ([agent, code]) => {
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument(ALLOW_ALL),
        sub: agentDocument(ALLOW_ALL, { mode: "subagent" }),
        off: agentDocument(ALLOW_ALL).replace("enabled: true", "enabled: false"),
      },
    });
    await expect(
      kernel.client.request(SessionCreate, { selection: select(agent, "scripted") }),
    ).rejects.toMatchObject({ code });
  });
});

describe("the selection of a later run", () => {
  test("[S-128] is the last agent and the model that answered last", async () => {
    const kernel = await openTestKernel({
      config: `${SECOND_MODEL}\n[model_retry]\nstandard_retries = 0\noverload_retries = 0\n`,
      agents: {
        primary: agentDocument(ALLOW_ALL),
        other: agentDocument(ALLOW_ALL, { models: ["custom.test/scripted", "custom.test/second"] }),
      },
      answers: [{ status: 401, body: "no" }, { text: "from the second" }],
    });
    const { sessionId } = await kernel.run("Hi", { selection: select("other", "scripted") });
    const resumed = await kernel.client.request(SessionResume, { session_id: sessionId });
    expect(resumed.selection).toEqual(select("other", "second"));
  });

  test("[S-128] [C-088] falls back to the default agent and its model when the agent is gone", async () => {
    const first = await openTestKernel({
      config: SECOND_MODEL,
      agents: {
        primary: agentDocument(ALLOW_ALL, { models: ["custom.test/second"] }),
        other: agentDocument(ALLOW_ALL),
      },
      answers: [{ text: "ok" }],
    });
    const { sessionId } = await first.run("Hi", { selection: select("other", "scripted") });
    await first.close();
    await rm(join(first.project.stateDir, "agents/other.md"));
    const second = await openTestKernel({ on: first });
    const resumed = await second.client.request(SessionResume, { session_id: sessionId });
    expect(resumed.selection).toEqual(select("primary", "second"));
  });

  test("[S-128] [C-088] falls back to the agent's own model when the used one is gone", async () => {
    const first = await openTestKernel({ config: SECOND_MODEL, answers: [{ text: "ok" }] });
    const { sessionId } = await first.run("Hi", { selection: select("primary", "second") });
    await first.close();
    await first.project.writeState("config.toml", providerToml(first.server));
    const second = await openTestKernel({ on: first });
    const resumed = await second.client.request(SessionResume, { session_id: sessionId });
    expect(resumed.selection).toEqual(select("primary", "scripted"));
  });
});

describe("sessions and their runs", () => {
  test("[S-044] a session goes on after a restart with its whole history", async () => {
    const first = await openTestKernel({ answers: [{ text: "I am first" }] });
    const { sessionId } = await first.run("Hi");
    await first.close();
    const second = await openTestKernel({ on: first, answers: [{ text: "I am second" }] });
    await second.run("Again", { session: sessionId });
    const messages = pick(second.server.requests[1]?.body, "messages") as unknown[];
    expect(messages.slice(1).map((message) => pick(message, "content"))).toEqual([
      "Hi",
      "I am first",
      "Again",
    ]);
    const { sessions } = await second.client.request(SessionList, {});
    expect(sessions.map(({ session_id, status }) => [session_id, status])).toEqual([
      [sessionId, "completed"],
    ]);
  });
});
