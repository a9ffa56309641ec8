import {
  RunCancel,
  SessionCompact,
  SessionPermissionSet,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  boundedModel,
  isSummaryRequest,
  messagesOf,
  TOO_LONG,
} from "../../support/bounded-model.ts";
import { pngOf } from "../../support/media-files.ts";
import type { Answer, ScriptedTurn } from "../../support/model-server.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";
import { SECOND_MODEL } from "../../support/second-model.ts";
import { payloadsOf } from "../../support/session-watch.ts";

const read = (filePath: string): ScriptedTurn => ({
  calls: [{ name: "read", arguments: { filePath } }],
});
const SUMMARY = "They want notes.txt read.";
const LINES = "one of many lines\n".repeat(600);
const NOTES = {
  prepare: (project: { write(path: string, text: string): Promise<string> }) =>
    project.write("notes.txt", LINES),
};

const typesOf = (events: readonly StoredEvent[]) => events.map(({ payload }) => payload.type);
const textOf = (request: Parameters<typeof messagesOf>[0] | undefined) =>
  JSON.stringify(request === undefined ? [] : messagesOf(request));
/** An answer that the provider's filter ended. */
function declined(text: string): Answer {
  return {
    events: [
      { choices: [{ index: 0, delta: { role: "assistant", content: text } }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }] },
      "data: [DONE]\n\n",
    ],
  };
}
const compaction = (keys: string) => `[context_compaction]\n${keys}\n`;

describe("a request that a provider refuses as too long", () => {
  test("[S-138] [S-216] is made again after a checkpoint, with the summary in place of what was said", async () => {
    const kernel = await openTestKernel({
      ...NOTES,
      config: compaction("auto = false\nkeep_recent_tokens = 0"),
      answers: [read("notes.txt"), TOO_LONG, { text: SUMMARY }, { text: "done" }],
    });
    const { end, events } = await kernel.run("Read my notes.");
    expect(end).toEqual({ type: "run_completed", final_text: "done" });
    const types = typesOf(events);
    expect(types.slice(types.indexOf("attempt_abandoned"))).toEqual([
      "attempt_abandoned",
      "internal_agent_started",
      "internal_agent_usage_recorded",
      "internal_agent_completed",
      "context_checkpoint_committed",
      "context_rehydrated",
      "model_attempt_started",
      "model_request_prepared",
      "text_delta",
      "model_turn_committed",
      "model_usage_recorded",
      "run_completed",
    ]);
    const [, asked, last] = kernel.server.requests;
    expect(textOf(asked)).toContain("one of many lines");
    expect(textOf(last)).toContain(SUMMARY);
    expect(textOf(last)).not.toContain("tool_calls");
  });

  test("[S-138] fails the run when it is refused again, and the error says what to do", async () => {
    const kernel = await openTestKernel({
      ...NOTES,
      answers: [read("notes.txt"), TOO_LONG, { text: SUMMARY }, TOO_LONG],
    });
    const { end } = await kernel.run("Read my notes.");
    expect(end).toMatchObject({
      type: "run_failed",
      error: {
        code: "model_error",
        message: expect.stringMatching(/still too long after a summary.*cookie session compact/),
        model_error: { kind: "context_length" },
      },
    });
    expect(kernel.server.requests).toHaveLength(3);
  });

  test("[S-138] [S-223] fails the run without a checkpoint when no summary can be had, and nothing is lost", async () => {
    const kernel = await openTestKernel({
      ...NOTES,
      answers: [read("notes.txt"), TOO_LONG, { calls: [{ name: "read" }] }, { text: "here" }],
    });
    const first = await kernel.run("Read my notes.");
    expect(first.end).toMatchObject({
      type: "run_failed",
      error: { message: expect.stringMatching(/could not be summarized/) },
    });
    expect(payloadsOf(first.events, "context_checkpoint_committed")).toEqual([]);
    await kernel.run("And now?", { session: first.sessionId });
    expect(textOf(kernel.server.requests.at(-1))).toContain("one of many lines");
  });

  test.each<[string, Answer]>([
    ["blank once it is cleaned", { text: "\u0000\u200b\u0007\n" }],
    ["a refusal", declined("I cannot help with that.")],
  ])("[S-221] [S-223] takes no summary that is %s", async (_, answer) => {
    const kernel = await openTestKernel({
      ...NOTES,
      answers: [read("notes.txt"), TOO_LONG, answer, { text: "here" }],
    });
    const first = await kernel.run("Read my notes.");
    expect(first.end).toMatchObject({
      type: "run_failed",
      error: { message: expect.stringMatching(/could not be summarized/) },
    });
    await kernel.run("And now?", { session: first.sessionId });
    expect(textOf(kernel.server.requests.at(-1))).toContain("one of many lines");
  });

  test("[S-221] tells the model of a summary that ran into its limit", async () => {
    const cut: Answer = { text: "They want notes", finish: "length" };
    const kernel = await openTestKernel({
      ...NOTES,
      answers: [read("notes.txt"), TOO_LONG, cut, { text: "done" }],
    });
    await kernel.run("Read my notes.");
    expect(textOf(kernel.server.requests.at(-1))).toMatch(/They want notes.{0,8}\[[^\]]*cut off/);
  });

  test("[S-138] is not one that the model had begun to answer", async () => {
    const begun: Answer = {
      events: [
        { choices: [{ index: 0, delta: { role: "assistant", content: "Well" } }] },
        { error: { message: "maximum context length exceeded", code: "context_length_exceeded" } },
      ],
    };
    const kernel = await openTestKernel({ ...NOTES, answers: [read("notes.txt"), begun] });
    const { end } = await kernel.run("Read my notes.");
    expect(end).toMatchObject({
      type: "run_failed",
      error: { message: expect.stringMatching(/had begun to answer/) },
    });
    expect(kernel.server.requests).toHaveLength(2);
  });

  test("[S-138] has a recovery of its own with the next model of the chain, and after each turn", async () => {
    const kernel = await openTestKernel({
      ...NOTES,
      config: SECOND_MODEL,
      agents: {
        primary: agentDocument(ALLOW_ALL, {
          models: ["custom.test/scripted", "custom.test/second"],
        }),
      },
      answers: [
        read("notes.txt"),
        TOO_LONG,
        { text: SUMMARY },
        { ...read("notes.txt"), text: "again" },
        TOO_LONG,
        { text: SUMMARY },
        { status: 401, body: { error: { message: "bad key" } } },
        read("notes.txt"),
        TOO_LONG,
        { text: SUMMARY },
        { text: "done" },
      ],
    });
    const { end, events } = await kernel.run("Read my notes.");
    expect(end).toEqual({ type: "run_completed", final_text: "done" });
    const seqs = events
      .filter(({ payload }) => payload.type === "context_checkpoint_committed")
      .map(({ seq }) => seq);
    expect(
      payloadsOf(events, "context_checkpoint_committed").map(
        ({ boundaries }) => boundaries.prior_checkpoint_seq,
      ),
    ).toEqual([null, seqs[0], seqs[1]]);
  });
});

describe("a conversation that comes near the limit of its model", () => {
  const LIMIT = 8000;

  test("[S-216] [S-217] [S-220] is summarized before the request that would reach the trigger", async () => {
    const model = boundedModel({
      limitTokens: LIMIT,
      turn: (count) => (count < 5 ? read("notes.txt") : { text: "done" }),
    });
    const kernel = await openTestKernel({ ...NOTES, contextTokens: LIMIT });
    kernel.server.otherwise(model.answer);
    const { end, events } = await kernel.run("Read my notes, often.");
    expect(end).toEqual({ type: "run_completed", final_text: "done" });
    expect(model.refused.filter((request) => !isSummaryRequest(request))).toEqual([]);
    const checkpoints = payloadsOf(events, "context_checkpoint_committed");
    expect(checkpoints.length).toBeGreaterThan(0);
    for (const { budgets } of checkpoints) {
      expect(budgets).toMatchObject({ context_limit_tokens: LIMIT, trigger_tokens: 5600 });
      expect(budgets.input_tokens_after).toBeLessThan(budgets.input_tokens_before);
      expect(budgets.input_tokens_before).toBeGreaterThanOrEqual(5600);
    }
    const types = typesOf(events);
    const at = types.indexOf("context_checkpoint_committed");
    expect(types.slice(at).find((type) => /attempt|turn_committed/.test(type))).toBe(
      "model_attempt_started",
    );
  });

  test("[S-216] is summarized at the end of a run whose last turn reports as much", async () => {
    const kernel = await openTestKernel({
      contextTokens: LIMIT,
      config: compaction("keep_recent_tokens = 0"),
      answers: [
        { text: "a long story", usage: { input: 5000, output: 700 } },
        { text: SUMMARY },
        { text: "more" },
      ],
    });
    const first = await kernel.run("Tell me a story. ".repeat(40));
    expect(typesOf(first.events).slice(-2)).toEqual([
      "context_checkpoint_committed",
      "run_completed",
    ]);
    await kernel.run("Go on.", { session: first.sessionId });
    const last = textOf(kernel.server.requests.at(-1));
    expect(last).toContain(SUMMARY);
    expect(last).toContain("Go on.");
    expect(last).not.toContain("Tell me a story.");
  });

  test("[S-216] at the end of a run in a headless kernel is left to the next request", async () => {
    const kernel = await openTestKernel({
      contextTokens: LIMIT,
      headless: true,
      config: compaction("keep_recent_tokens = 0"),
      answers: [
        { text: "a long story", usage: { input: 5600, output: 100 } },
        { text: SUMMARY },
        { text: "more" },
      ],
    });
    const first = await kernel.run("Tell me a story. ".repeat(40));
    expect(first.end.type).toBe("run_completed");
    expect(kernel.server.asides).toEqual([]);
    const second = await kernel.run("Go on.", { session: first.sessionId });
    const types = typesOf(second.events);
    expect(types.indexOf("context_checkpoint_committed")).toBeGreaterThan(0);
    expect(types.indexOf("context_checkpoint_committed")).toBeLessThan(
      types.indexOf("model_attempt_started"),
    );
    expect(textOf(kernel.server.requests.at(-1))).toContain(SUMMARY);
  });

  test("[S-148] [S-216] at the end of a run can be seen, and cancelling ends it at once", async () => {
    const kernel = await openTestKernel({
      contextTokens: LIMIT,
      answers: [{ text: "a long story", usage: { input: 5000, output: 700 } }],
    });
    kernel.server.answerAsides("context_compaction", {
      text: "Never.",
      until: new Promise(() => undefined),
    });
    const sessionId = await kernel.createSession();
    const watch = kernel.watch(sessionId);
    const runId = await kernel.start(sessionId, "Tell me a story. ".repeat(40));
    const { payload } = await watch.event("internal_agent_started");
    expect(payload).toMatchObject({ kind: "context_compaction" });
    expect(payloadsOf(watch.events, "model_turn_committed")).toHaveLength(1);
    await kernel.client.request(RunCancel, { run_id: runId });
    expect((await watch.end(runId)).type).toBe("run_cancelled");
    expect(typesOf(watch.events).slice(-2)).toEqual(["internal_agent_cancelled", "run_cancelled"]);
    expect(payloadsOf(watch.events, "context_checkpoint_committed")).toEqual([]);
  });

  test("[S-216] [C-043] is left alone with auto = false, and so is one of a model without a known limit", async () => {
    const kernel = await openTestKernel({
      contextTokens: LIMIT,
      config: compaction("auto = false"),
      answers: [{ text: "a long story", usage: { input: 7900, output: 700 } }, { text: "more" }],
    });
    const first = await kernel.run("Tell me a story.");
    await kernel.run("Go on.", { session: first.sessionId });
    expect(kernel.server.requests).toHaveLength(2);
  });

  test("[S-223] three failures in a row end the attempts of a run with one diagnostic", async () => {
    const model = boundedModel({
      limitTokens: 1_000_000,
      turn: (count) => (count < 8 ? read("notes.txt") : { text: "done" }),
      summary: () => ({ status: 401, body: { error: { message: "no" } } }),
    });
    const kernel = await openTestKernel({ ...NOTES, contextTokens: LIMIT });
    kernel.server.otherwise(model.answer);
    const { end, watch, sessionId } = await kernel.run("Read my notes, often.");
    expect(end).toEqual({ type: "run_completed", final_text: "done" });
    expect(model.summaries).toHaveLength(3);
    expect(watch.types).not.toContain("context_checkpoint_committed");
    const given = watch
      .payloads("plugin_diagnostic")
      .filter(({ message }) => /3 attempts/.test(message));
    expect(given).toMatchObject([{ plugin: "auto-compact", kind: "compaction_failed", count: 1 }]);
    expect(textOf(model.turns.at(-1)).split("one of many lines").length).toBeGreaterThan(7 * 600);
    await kernel.run("Again", { session: sessionId });
    expect(model.summaries.length).toBeGreaterThan(3);
  });

  test.for([
    {
      title: "prompt and tools alone are too long",
      limit: 500,
      problem: /nothing left to summarize/,
    },
    { title: "every result is too long", limit: 4000, problem: /do not keep it short enough/ },
  ])(
    "[B121] that no summary helps, because $title, ends after a bounded number of requests",
    async ({ limit, problem }) => {
      const model = boundedModel({ limitTokens: limit, turn: () => read("notes.txt") });
      const kernel = await openTestKernel({ ...NOTES, contextTokens: limit });
      kernel.server.otherwise(model.answer);
      const { end } = await kernel.run("Read my notes.");
      expect(end).toMatchObject({
        type: "run_failed",
        error: { code: "model_error", message: expect.stringMatching(problem) },
      });
      expect(end).toMatchObject({
        error: { message: expect.stringContaining("cookie session compact") },
      });
      expect(kernel.server.requests.length + kernel.server.asides.length).toBeLessThan(32);
    },
  );

  test("[B122] that a prompt alone has made too long is usable again with the next run", async () => {
    const model = boundedModel({ limitTokens: LIMIT, turn: () => ({ text: "fine" }) });
    const kernel = await openTestKernel({ contextTokens: LIMIT });
    kernel.server.otherwise(model.answer);
    const first = await kernel.run("much too long ".repeat(5000));
    expect(first.end).toMatchObject({
      type: "run_failed",
      error: { message: expect.stringContaining("nothing left to summarize") },
    });
    const next = await kernel.run("A short question.", { session: first.sessionId });
    expect(next.end).toEqual({ type: "run_completed", final_text: "fine" });
    expect(textOf(model.turns.at(-1))).toMatch(/summary 1.*A short question\./);
  });

  test("[B122] [S-218] whose summary cannot be asked for as a whole is asked for as a shortened copy, once", async () => {
    const limit = 6000;
    const model = boundedModel({
      limitTokens: limit,
      turn: (count) =>
        count < 4
          ? { ...read("notes.txt"), reasoning: "I think about this. ".repeat(900) }
          : { text: "done" },
    });
    const kernel = await openTestKernel({
      ...NOTES,
      contextTokens: 1_000_000,
      config: compaction("auto = false"),
    });
    kernel.server.otherwise(model.answer);
    const { end, events } = await kernel.run("Read my notes, often.");
    expect(end).toEqual({ type: "run_completed", final_text: "done" });
    expect(payloadsOf(events, "internal_agent_failed").length).toBeGreaterThan(0);
    const short = textOf(model.summaries.at(-1));
    expect(short).toMatch(/bytes left out; all of it[^:]*: artifact:\/\/[0-9a-f]{64}/);
    expect(short).not.toContain("I think about this.");
    expect(JSON.stringify(model.summaries.at(-1)?.body)).not.toContain('"tools":');
  });
});

test("[S-222] [S-157] files that were read come back as they are now, as far as they may be read unasked", async () => {
  const kernel = await openTestKernel({
    agents: {
      primary: agentDocument({
        ...ALLOW_ALL,
        read: { "*": "allow", ".env": "allow", secret: "ask" },
      }),
    },
    config: compaction("keep_recent_tokens = 0"),
    prepare: async (project) => {
      await project.write("plain.txt", "first version");
      await project.write(".env", "KEY=hidden");
      await project.write("secret", "also hidden");
    },
    answers: [
      {
        calls: ["plain.txt", ".env"].map((filePath) => ({ name: "read", arguments: { filePath } })),
      },
      { text: "done".repeat(400) },
      { text: SUMMARY },
      { text: "more" },
    ],
  });
  const first = await kernel.run("Read them.");
  await kernel.project.write("plain.txt", "second version");
  await kernel.client.request(SessionPermissionSet, {
    session_id: first.sessionId,
    action: "read",
    resource: ".env",
    effect: "ask",
  });
  await kernel.client.request(SessionCompact, { session_id: first.sessionId, focus: null });
  const { payload } = await first.watch.event("context_rehydrated");
  expect(payload.files).toMatchObject([{ path: "plain.txt", content: "second version" }]);
  await kernel.run("Go on.", { session: first.sessionId });
  const last = textOf(kernel.server.requests.at(-1));
  expect(last).toContain("second version");
  expect(last).not.toContain("hidden");
});

test("[B106] a checkpoint of a conversation with an image adds little to the log, and no image", async () => {
  const kernel = await openTestKernel({
    media: { image: { mime: ["image/png"] } },
    config: compaction("keep_recent_tokens = 4000"),
    prepare: (project) => project.write("big.png", pngOf(64, 64, 2_000_000)),
    answers: [read("big.png"), { text: "An image. ".repeat(100) }],
  });
  const { sessionId, watch } = await kernel.run("Look at the image. ".repeat(50));
  const before = watch.events.length;
  for (let round = 1; round <= 5; round += 1) {
    kernel.server.enqueue({ text: SUMMARY }, { text: "Well. ".repeat(200) });
    const asked = { session_id: sessionId, focus: null };
    expect(await kernel.client.request(SessionCompact, asked)).toEqual({ compacted: true });
    await kernel.run("And now? ".repeat(100), { session: sessionId });
  }
  const added = watch.events.slice(before).filter(({ run_id: runId }) => runId === null);
  expect(Buffer.byteLength(JSON.stringify(added))).toBeLessThan(5 * 4096);
  expect(textOf(kernel.server.requests.at(-1))).not.toContain("data:image");
});
