import {
  type ClientKey,
  type ParamsInput,
  RunCancel,
  SessionFork,
  SessionGet,
  type SessionId,
  SessionRename,
  SessionRevert,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createGate } from "../../support/gate.ts";
import { pick } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
} from "../../support/open-test-kernel.ts";
import { readOnlyLog } from "../../support/session-log.ts";

const TITLES = "[session_title]\n";
const OK = { text: "ok" };
const READ = { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] };

async function titleOf(kernel: TestKernel, session_id: SessionId): Promise<string | null> {
  const { session } = await kernel.client.request(SessionGet, { session_id });
  return session.title;
}

/** A kernel whose model gives `title`, once `until` has come. */
async function openTitled(
  title: string,
  options: Parameters<typeof openTestKernel>[0] & { until?: Promise<unknown> } = {},
): Promise<TestKernel> {
  const { until, ...rest } = options;
  const kernel = await openTestKernel({ config: TITLES, answers: [{ text: "ok" }], ...rest });
  kernel.server.answerAsides("session_title", { text: title, ...(until && { until }) });
  return kernel;
}

describe("the title agent", () => {
  test("[S-029] [S-030] [S-225] names a session after its first turn, beside the run", async () => {
    const named = createGate();
    const kernel = await openTitled("Fast builds", {
      config: `${TITLES}max_input_messages = 1\n`,
      answers: [READ, { text: "done", until: named.opened }],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Make the build fast");
    const { payload, run_id } = await watch.event("session_title_committed");
    named.open();
    await watch.end(runId);

    const [started] = watch.payloads("internal_agent_started");
    expect(run_id).toBe(runId);
    expect(payload.change).toEqual({
      kind: "internal_agent_set",
      title: "Fast builds",
      invocation_id: started?.invocation_id,
    });
    expect(started).toMatchObject({
      kind: "session_title",
      backend: { type: "model", resolved_model: kernel.selection.model },
      call: { name: "title" },
    });
    expect(watch.payloads("internal_agent_usage_recorded")).toHaveLength(1);
    expect(await titleOf(kernel, session)).toBe("Fast builds");
    const { body } = kernel.server.asides[0] ?? {};
    expect(pick(body, "tools")).toBeUndefined();
    expect(pick(body, "messages", 1, "content")).toBe('["Make the build fast"]');
    expect(kernel.server.asides).toHaveLength(1);
  });

  test("answers after its run has ended, while the next one runs", async () => {
    const asked = createGate();
    const second = createGate();
    const kernel = await openTitled("Later", {
      until: asked.opened,
      answers: [{ text: "ok" }, { text: "ok", until: second.opened }],
    });
    const { sessionId, runId, watch } = await kernel.run("One");
    expect(await titleOf(kernel, sessionId)).toBeNull();
    const next = await kernel.start(sessionId, "Two");
    await watch.event("text_delta", (_, { run_id }) => run_id === next);
    asked.open();
    const titled = await watch.event("session_title_committed");
    second.open();
    await watch.end(next);
    expect(titled.run_id).toBe(runId);
    expect(watch.payloads("session_title_committed")).toHaveLength(1);
    expect(await titleOf(kernel, sessionId)).toBe("Later");
    // Nothing of it is left over for the next kernel.
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    const { watch: later } = await again.run("Three", { session: sessionId });
    expect(later.types).not.toContain("internal_agent_interrupted");
    expect(await titleOf(again, sessionId)).toBe("Later");
  });

  test("[S-028] [S-029] asks anew after a reset, and leaves a person's title alone", async () => {
    const kernel = await openTitled("Asked", { answers: [OK, OK, OK] });
    const { sessionId, watch } = await kernel.run("One");
    await watch.event("session_title_committed");
    const rename = (change: ParamsInput<typeof SessionRename>["change"]) =>
      kernel.client.request(SessionRename, {
        session_id: sessionId,
        client_rename_id: change.type as ClientKey,
        change,
      });
    await rename({ type: "set", title: "Mine" });
    await kernel.run("Two", { session: sessionId });
    expect(await titleOf(kernel, sessionId)).toBe("Mine");
    await rename({ type: "reset" });
    await kernel.run("Three", { session: sessionId });
    await expect.poll(() => titleOf(kernel, sessionId)).toBe("Asked");
    expect(kernel.server.asides).toHaveLength(2);
  });

  test("[S-028] comes too late for a session that a person has named meanwhile", async () => {
    const asked = createGate();
    const kernel = await openTitled("Asked", { until: asked.opened });
    const { sessionId, watch } = await kernel.run("One");
    await kernel.client.request(SessionRename, {
      session_id: sessionId,
      client_rename_id: "mine" as ClientKey,
      change: { type: "set", title: "Mine" },
    });
    asked.open();
    await watch.event("internal_agent_completed");
    expect(await titleOf(kernel, sessionId)).toBe("Mine");
  });

  test("is given up by a revert, which takes back what it would name", async () => {
    const never = createGate();
    const kernel = await openTitled("Never", { until: never.opened, answers: [OK, OK] });
    const { sessionId, watch } = await kernel.run("One");
    await expect.poll(() => kernel.server.asides).toHaveLength(1);
    await kernel.client.request(SessionRevert, { session_id: sessionId, through_seq: 1 });
    await watch.event("session_reverted");
    expect(watch.types.slice(-4)).toEqual([
      "internal_agent_started",
      "internal_agent_cancelled",
      "session_title_committed",
      "session_reverted",
    ]);
    expect(await titleOf(kernel, sessionId)).toBeNull();
    kernel.server.answerAsides("session_title", { text: "Again" });
    await kernel.run("Two", { session: sessionId });
    await expect.poll(() => titleOf(kernel, sessionId)).toBe("Again");
  });

  test("does not follow a fork, which has a title of its own", async () => {
    const asked = createGate();
    const second = createGate();
    const kernel = await openTitled("Asked", {
      until: asked.opened,
      answers: [READ, { ...OK, until: second.opened }, OK],
    });
    const sessionId = await kernel.createSession();
    const watch = kernel.watch(sessionId);
    const runId = await kernel.start(sessionId, "One");
    await expect.poll(() => kernel.server.asides).toHaveLength(1);
    second.open();
    await watch.end(runId);
    expect(watch.types).toContain("internal_agent_started");
    const through_seq = watch.events.at(-1)?.seq ?? 0;
    const { session_id: forked } = await kernel.client.request(SessionFork, {
      session_id: sessionId,
      through_seq,
    });
    expect(await titleOf(kernel, forked)).toBe("Untitled (fork)");
    expect((await kernel.run("Two", { session: forked })).end).toMatchObject({
      type: "run_completed",
    });
    asked.open();
    await watch.event("session_title_committed");
    expect(await titleOf(kernel, sessionId)).toBe("Asked");
    expect(await titleOf(kernel, forked)).toBe("Untitled (fork)");
  });

  test.for([
    ["two lines", "Fix it all\nand more", "Fix it all"],
    ["quotes", " “`Fix` 'it'” ", "Fix` 'it"],
    ["a terminal's controls", "a\u001B]0;b\u0007c\u202Ed", "a ]0;b c d"],
    ["too many characters", "👍".repeat(30), "👍".repeat(12)],
  ])("[S-030] %s become one short line", async ([, text = "", title]) => {
    const kernel = await openTitled(text, { config: `${TITLES}max_chars = 12\n` });
    const { sessionId, watch } = await kernel.run("Hi");
    await watch.event("session_title_committed");
    expect(await titleOf(kernel, sessionId)).toBe(title);
  });

  test("[S-228] an answer of which nothing is left gives way to the first message", async () => {
    const kernel = await openTitled('"\n"', { config: `${TITLES}max_chars = 12\n` });
    const { sessionId, watch } = await kernel.run("  Make\n\n the   build fast ");
    await watch.event("session_title_committed");
    expect(await titleOf(kernel, sessionId)).toBe("Make the bui");
  });
});

describe("without an answer of the title agent", () => {
  test("[S-031] [S-228] [C-096] the first message becomes the title, and the run goes on", async () => {
    const kernel = await openTestKernel({
      config: `${TITLES}max_chars = 12\n`,
      answers: [{ text: "ok" }, { text: "ok" }],
    });
    const { sessionId, end, watch } = await kernel.run("  Make\n\n the   build fast ");
    expect(end).toMatchObject({ type: "run_completed" });
    await watch.event("session_title_committed");
    const [failed] = watch.payloads("internal_agent_failed");
    expect(failed?.failure).toMatchObject({
      code: "model_failure",
      model_error: { kind: "invalid_request", http_status: 400 },
    });
    await kernel.run("Something else", { session: sessionId });
    expect(await titleOf(kernel, sessionId)).toBe("Make the bui");
    expect(kernel.server.asides).toHaveLength(1);
  });

  test("[S-148] a cancelled run cancels it", async () => {
    const never = createGate();
    const kernel = await openTitled("Never", {
      until: never.opened,
      answers: [READ, { text: "x", until: never.opened }],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const run_id = await kernel.start(session, "Hi there");
    await watch.event("text_delta");
    await expect.poll(() => kernel.server.asides).toHaveLength(1);
    await kernel.client.request(RunCancel, { run_id });
    await watch.event("internal_agent_cancelled");
    await watch.end(run_id);
    await watch.event("session_title_committed");
    expect(await titleOf(kernel, session)).toBe("Hi there");
  });

  test("[S-094] a kernel that closes gives it up and leaves nothing to repair", async () => {
    const never = createGate();
    const kernel = await openTitled("Never", { until: never.opened });
    const { watch } = await kernel.run("Hi there");
    await expect.poll(() => kernel.server.asides).toHaveLength(1);
    expect(watch.types).not.toContain("session_title_committed");
    await kernel.close();
    const types = (await readOnlyLog(kernel.project)).map(({ payload }) => payload.type);
    expect(types.slice(-3)).toEqual([
      "internal_agent_started",
      "internal_agent_cancelled",
      "session_title_committed",
    ]);
  });

  test("[S-227] [C-095] a disabled one is unavailable", async () => {
    const kernel = await openTitled("Never", {
      agents: {
        primary: agentDocument(ALLOW_ALL),
        title: agentDocument({}, { mode: "internal", models: ["${parent_model}"] }).replace(
          "enabled: true",
          "enabled: false",
        ),
      },
    });
    const { watch } = await kernel.run("Hi");
    await watch.event("session_title_committed");
    expect(watch.payloads("internal_agent_started")[0]?.backend).toEqual({
      type: "builtin",
      name: "unavailable",
      revision: "1",
    });
    expect(watch.payloads("internal_agent_failed")[0]?.failure.code).toBe("agent_unavailable");
    expect(kernel.server.asides).toEqual([]);
  });

  test("[S-031] none is made with fallback_to_input_excerpt = false", async () => {
    const kernel = await openTestKernel({
      config: `${TITLES}fallback_to_input_excerpt = false\n`,
      answers: [{ text: "ok" }],
    });
    const { watch } = await kernel.run("Hi");
    await watch.event("internal_agent_failed");
    await kernel.close();
    expect(watch.types).not.toContain("session_title_committed");
  });
});

test("[S-032] generate_on_first_turn = false suppresses automatic titles", async () => {
  const kernel = await openTestKernel({
    config: `${TITLES}generate_on_first_turn = false\n`,
    answers: [{ text: "ok" }],
  });
  const { watch } = await kernel.run("Hi");
  await kernel.close();
  expect(watch.types).not.toContain("session_title_committed");
  expect(kernel.server.asides).toEqual([]);
});

test("[S-029] a run without a committed turn leaves no title", async () => {
  const never = createGate();
  const kernel = await openTestKernel({
    config: TITLES,
    answers: [{ text: "x", until: never.opened }],
  });
  const session = await kernel.createSession();
  const watch = kernel.watch(session);
  const run_id = await kernel.start(session, "Hi");
  await watch.event("text_delta");
  await kernel.client.request(RunCancel, { run_id });
  await watch.end(run_id);
  expect(await titleOf(kernel, session)).toBeNull();
  expect(kernel.server.asides).toEqual([]);
});

test("[S-031] a headless kernel asks no model for a title and has one when the run ends", async () => {
  const kernel = await openTestKernel({
    config: TITLES,
    headless: true,
    answers: [READ, { text: "ok" }],
  });
  const { sessionId, watch } = await kernel.run("Hi there");
  const { types } = watch;
  expect(types.indexOf("session_title_committed")).toBeGreaterThan(
    types.indexOf("model_turn_committed"),
  );
  expect(await titleOf(kernel, sessionId)).toBe("Hi there");
  expect(kernel.server.asides).toEqual([]);
});
