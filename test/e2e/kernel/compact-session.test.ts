import {
  isCookieError,
  RunCancel,
  RunRecallSteer,
  RunSteer,
  SessionCompact,
  type SessionId,
  SessionRevert,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { messagesOf, TOO_LONG } from "../../support/bounded-model.ts";
import { createGate } from "../../support/gate.ts";
import { delivered, writeHookPlugins } from "../../support/hook-plugin.ts";
import { pick } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";

const SUMMARY = "They talked about lighthouses.";
const QUESTION = "Tell me about lighthouses. ".repeat(80);

function compact(kernel: TestKernel, sessionId: SessionId, focus: string | null = null) {
  return kernel.client.request(SessionCompact, { session_id: sessionId, focus });
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "none",
    (error: unknown) => (isCookieError(error) ? error.code : String(error)),
  );
const lastText = (kernel: TestKernel) => {
  const request = kernel.server.requests.at(-1);
  return request === undefined ? "" : JSON.stringify(messagesOf(request));
};

describe("session.compact", () => {
  test("[S-224] summarizes an idle session; the focus stands behind the instructions", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "Tall towers. ".repeat(50) }, { text: SUMMARY }, { text: "more" }],
    });
    const { sessionId, watch } = await kernel.run(QUESTION);
    expect(await compact(kernel, sessionId, "the towers")).toEqual({ compacted: true });
    const [asked] = kernel.server.asides;
    expect(JSON.stringify(pick(asked?.body, "messages", -1))).toMatch(
      /Write the notes.*Pay attention to this above all: the towers/,
    );
    expect(pick(asked?.body, "messages", 0)).toEqual(
      pick(kernel.server.requests[0]?.body, "messages", 0),
    );
    expect(pick(asked?.body, "tools")).toEqual(pick(kernel.server.requests[0]?.body, "tools"));
    const { payload, run_id: runId } = await watch.event("context_checkpoint_committed");
    expect(runId).toBeNull();
    expect(payload).toMatchObject({
      checkpoint: { type: "internal_summary", summary: SUMMARY, byte_length: SUMMARY.length },
      budgets: { context_limit_tokens: 200_000, trigger_tokens: 140_000 },
    });
    await kernel.run("Go on.", { session: sessionId });
    expect(lastText(kernel)).toContain(SUMMARY);
    expect(lastText(kernel)).not.toContain("Tell me about lighthouses.");
  });

  test("[S-224] is refused while the session runs, and finds nothing to do before and behind a summary", async () => {
    const gate = createGate();
    const kernel = await openTestKernel({
      answers: [{ text: "Tall towers. ".repeat(50), until: gate.opened }, { text: SUMMARY }],
      config: "[context_compaction]\nkeep_recent_tokens = 0",
    });
    const sessionId = await kernel.createSession();
    expect(await compact(kernel, sessionId)).toEqual({ compacted: false });
    const watch = kernel.watch(sessionId);
    const runId = await kernel.start(sessionId, QUESTION);
    await watch.event("text_delta");
    expect(await codeOf(compact(kernel, sessionId))).toBe("session_running");
    gate.open();
    await watch.end(runId);
    expect(await compact(kernel, sessionId)).toEqual({ compacted: true });
    expect(await compact(kernel, sessionId)).toEqual({ compacted: false });
    expect(kernel.server.asides).toHaveLength(1);
  });

  test.for([
    { title: "is longer than the conversation", answer: { text: "long ".repeat(5000) } },
    { title: "is more than text", answer: { calls: [{ name: "read" }] } },
    { title: "is empty", answer: { text: " " } },
    { title: "cannot be had", answer: { status: 401, body: { error: { message: "no" } } } },
    { title: "has more bytes than allowed", answer: { text: "x".repeat(600) } },
  ])(
    "[S-220] [S-223] [S-228] a summary that $title leaves the history as it is",
    async ({ answer }) => {
      const kernel = await openTestKernel({
        answers: [{ text: "Tall towers." }, answer, { text: "more" }],
        config: "[context_compaction]\nmax_summary_bytes = 500",
      });
      const { sessionId, watch } = await kernel.run("Tell me about lighthouses.");
      expect(await compact(kernel, sessionId)).toEqual({
        compacted: false,
        failure: expect.stringMatching(/\w/),
      });
      await kernel.run("Go on.", { session: sessionId });
      expect(lastText(kernel)).toContain("Tell me about lighthouses.");
      expect(lastText(kernel)).toContain("Tall towers.");
      expect(watch.types).not.toContain("context_checkpoint_committed");
    },
  );

  test("[D-015] can be cancelled, and leaves the session as it was and usable", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "Tall towers." }, { end: "hang", events: [] }, { text: "more" }],
    });
    const { sessionId, watch } = await kernel.run(QUESTION);
    const stop = new AbortController();
    const asked = kernel.client.request(
      SessionCompact,
      { session_id: sessionId, focus: null },
      { signal: stop.signal },
    );
    await watch.event("internal_agent_started");
    stop.abort();
    expect(await codeOf(asked)).toBe("cancelled");
    await watch.event("internal_agent_cancelled");
    await kernel.run("Go on.", { session: sessionId });
    expect(lastText(kernel)).toContain("Tell me about lighthouses.");
  });

  test("a second one while one is under way is refused; a revert waits for its end", async () => {
    const gate = createGate();
    const kernel = await openTestKernel({
      answers: [{ text: "Tall towers." }, { text: SUMMARY, until: gate.opened }],
    });
    const { sessionId, watch } = await kernel.run(QUESTION);
    const first = compact(kernel, sessionId);
    const { seq } = await watch.event("internal_agent_started");
    expect(await codeOf(compact(kernel, sessionId))).toBe("busy");
    const revert = () =>
      kernel.client.request(SessionRevert, { session_id: sessionId, through_seq: seq - 1 });
    const reverted = revert();
    expect(await codeOf(revert())).toBe("busy");
    gate.open();
    expect(await first).toEqual({ compacted: true });
    await reverted;
    kernel.server.enqueue({ text: "more" });
    await kernel.run("Go on.", { session: sessionId });
    expect(lastText(kernel)).toContain("Tell me about lighthouses.");
    expect(lastText(kernel)).not.toContain(SUMMARY);
  });

  test("[S-261] asks nobody when the budget of the tree is used up", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "Tall towers.", usage: { input: 900, output: 200 } }],
      config: "[budget]\nmax_tokens = 1000",
    });
    const { sessionId } = await kernel.run(QUESTION);
    expect(await compact(kernel, sessionId)).toEqual({
      compacted: false,
      failure: expect.stringContaining("budget_exceeded:max_tokens"),
    });
    expect(kernel.server.asides).toEqual([]);
  });

  test("[S-221] a checkpoint holds after a restart", async () => {
    const first = await openTestKernel({ answers: [{ text: "Tall towers." }, { text: SUMMARY }] });
    const { sessionId } = await first.run(QUESTION);
    expect(await compact(first, sessionId)).toEqual({ compacted: true });
    await first.close();
    const second = await openTestKernel({ on: first, answers: [{ text: "more" }] });
    await second.run("Go on.", { session: sessionId });
    expect(lastText(second)).toContain(SUMMARY);
    expect(lastText(second)).not.toContain("Tell me about lighthouses.");
  });

  test("[C-169] the request of a summary carries cache markers where its wire has them", async () => {
    const kernel = await openTestKernel({
      wire: "anthropic",
      answers: [{ text: "Tall towers." }, { text: SUMMARY }],
    });
    const { sessionId } = await kernel.run(QUESTION);
    await compact(kernel, sessionId);
    const { body } = kernel.server.asides[0] ?? {};
    expect(JSON.stringify(pick(body, "system"))).toContain("cache_control");
    expect(JSON.stringify(pick(body, "tools", -1))).toContain("cache_control");
  });
});

describe("the hook session_before_compact", () => {
  async function openWith(hook: (facts: { readonly instructions?: string | undefined }) => object) {
    const kernel = await openTestKernel({
      answers: [{ text: "Tall towers." }, { text: SUMMARY }],
      prepare: (project) =>
        writeHookPlugins(project, [
          { name: "observer", hooks: { session_before_compact: () => ({}) } },
          { name: "meddler", hooks: { session_before_compact: hook } },
        ]),
    });
    const { sessionId } = await kernel.run(QUESTION);
    return { kernel, sessionId };
  }

  test("[E-160] keeps a compaction from happening, and the reason is told", async () => {
    const { kernel, sessionId } = await openWith(() => ({ cancel: true, reason: "not today" }));
    expect(await compact(kernel, sessionId)).toEqual({
      compacted: false,
      cancellation_reason: expect.stringContaining("not today"),
    });
    expect(kernel.server.asides).toEqual([]);
  });

  test("[E-160] replaces the instructions and adds to them", async () => {
    const { kernel, sessionId } = await openWith(({ instructions = "" }) => ({
      addendum: "Write the notes from which you, without any memory of this conversation, sing.",
      instructions_override: `Mine instead of ${instructions.length > 100 ? "yours" : "nothing"}.`,
    }));
    expect(await compact(kernel, sessionId, "focus")).toEqual({ compacted: true });
    const last = pick(kernel.server.asides[0]?.body, "messages", -1, "content");
    expect(JSON.stringify(last)).toMatch(/Mine instead of yours\..*sing\..*above all: focus/);
    expect(JSON.stringify(last)).not.toContain("Stop working on the task");
    const told = await delivered(kernel.project);
    expect(told.map(({ hook }) => hook)).toEqual([
      "session_before_compact",
      "session_before_compact",
    ]);
  });

  test("[E-166] an override that is too long is left out", async () => {
    const { kernel, sessionId } = await openWith(() => ({
      instructions_override: "x".repeat(64 * 1024 + 1),
    }));
    expect(await compact(kernel, sessionId)).toEqual({ compacted: true });
    expect(JSON.stringify(kernel.server.asides[0]?.body)).toContain("Write the notes from which");
  });
});

test("[S-146] [S-147] what is said while a run is summarized can be taken back, and follows the checkpoint", async () => {
  const gate = createGate();
  const kernel = await openTestKernel({
    contextTokens: 8000,
    answers: [
      { text: "Tall towers.", usage: { input: 5600, output: 100 } },
      { text: SUMMARY, until: gate.opened },
      { text: "after" },
    ],
  });
  const sessionId = await kernel.createSession();
  const watch = kernel.watch(sessionId);
  const runId = await kernel.start(sessionId, QUESTION);
  await watch.event("internal_agent_started");
  const steer = (input: string) => kernel.client.request(RunSteer, { run_id: runId, input });
  await steer("And bells?");
  await steer("No, forget it.");
  const { recalled } = await kernel.client.request(RunRecallSteer, { run_id: runId });
  expect(recalled).toBe("No, forget it.");
  gate.open();
  expect(await watch.end(runId)).toEqual({ type: "run_completed", final_text: "after" });
  const order = watch.types.filter((type) => /checkpoint|input_(admitted|submitted)/.test(type));
  expect(order).toEqual([
    "user_input_submitted",
    "user_input_admitted",
    "user_input_admitted",
    "context_checkpoint_committed",
    "user_input_submitted",
  ]);
  expect(lastText(kernel)).toMatch(/lighthouses.*And bells\?/);
});

test.for([
  { when: "after a turn", first: { text: "Tall towers.", usage: { input: 5600, output: 100 } } },
  { when: "after a refusal", first: TOO_LONG },
] as const)(
  "[S-148] a run that is cancelled while it is summarized $when ends at once, without a checkpoint",
  async ({ first }) => {
    const kernel = await openTestKernel({
      contextTokens: 8000,
      answers: [{ text: "Tall towers." }, first, { end: "hang", events: [] }],
    });
    const { sessionId, watch } = await kernel.run(QUESTION);
    const runId = await kernel.start(sessionId, "Go on.");
    await watch.event("internal_agent_started");
    await kernel.client.request(RunCancel, { run_id: runId });
    expect(await watch.end(runId)).toEqual({ type: "run_cancelled", reason: null });
    expect(watch.types).toContain("internal_agent_cancelled");
    expect(watch.types).not.toContain("context_checkpoint_committed");
  },
);

test("a provider whose counts make no sense cannot stop a run", async () => {
  const calls = [{ name: "read", arguments: { filePath: "." } }];
  const usage = { input: Number.MAX_SAFE_INTEGER, output: 5 };
  const turns = [1, 2, 3, 4, 5, 6].map(() => ({ calls, usage }));
  const kernel = await openTestKernel({ contextTokens: 8000 });
  kernel.server.answerAsides("context_compaction", { text: SUMMARY });
  kernel.server.enqueue(...turns, { text: "done", usage });
  const { end } = await kernel.run("Look around.");
  expect(end).toEqual({ type: "run_completed", final_text: "done" });
  expect(kernel.server.asides.length).toBeLessThan(8);
});
