import { RunCancel } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { Answer } from "../../support/model-server.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";
import { SECOND_MODEL } from "../../support/second-model.ts";
import { payloadsOf } from "../../support/session-watch.ts";

const failure = (status: number, message: string, headers = {}): Answer => ({
  status,
  headers,
  body: { error: { message } },
});
const UNAVAILABLE = failure(500, "try later");
const REFUSED = failure(401, "bad key");

const retries = (standard: number, overload: number, ceilingMs = 5) =>
  `[model_retry]\nstandard_retries = ${standard}\noverload_retries = ${overload}\nbackoff_ceiling_ms = ${ceilingMs}\n`;

const TWO_MODELS = {
  primary: agentDocument(ALLOW_ALL, { models: ["custom.test/scripted", "custom.test/second"] }),
};

describe("the events of a turn", () => {
  test("[S-043] [S-129] [S-150] one attempt is opened, prepared, streamed, committed and accounted for", async () => {
    const kernel = await openTestKernel({ answers: [{ text: ["Hel", "lo"] }] });
    const { end, watch } = await kernel.run("Hi");
    expect(watch.types).toEqual([
      "session_created",
      "run_started",
      "user_input_submitted",
      "user_input_applied",
      "model_attempt_started",
      "model_request_prepared",
      "text_delta",
      "model_turn_committed",
      "model_usage_recorded",
      "run_completed",
    ]);
    expect(end).toEqual({ type: "run_completed", final_text: "Hello" });
  });

  test("[S-150] a turn without text completes the run with none", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "" }, { text: "later" }] });
    const { end } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: null });
  });

  test("an answer cut at the output limit ends the run and leaves a warning", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "half an ans", finish: "length" }] });
    const { end, events } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: "half an ans" });
    const [turn] = payloadsOf(events, "model_turn_committed");
    expect(turn?.turn.finish_reason).toBe("length");
    expect(turn?.warnings).toEqual([expect.stringMatching(/limit/)]);
  });

  test("[S-044] [S-045] turns are numbered through the session, attempts through the run", async () => {
    const read = { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] };
    const kernel = await openTestKernel({
      config: retries(1, 1),
      answers: [read, UNAVAILABLE, { text: "one" }, { text: "two" }],
    });
    const first = await kernel.run("Hi");
    const second = await kernel.run("Again", { session: first.sessionId });
    const attempts = [first, second].map(({ events }) =>
      payloadsOf(events, "model_attempt_started").map((event) => [
        event.attempt_ordinal,
        event.retry_ordinal,
      ]),
    );
    const turns = [first, second].map(({ events }) =>
      payloadsOf(events, "model_turn_committed").map((event) => event.model_turn_seq),
    );
    expect({ attempts, turns }).toEqual({
      attempts: [
        [
          [1, 0],
          [2, 0],
          [3, 1],
        ],
        [[1, 0]],
      ],
      turns: [[1, 2], [3]],
    });
  });
});

describe("retries and fallback", () => {
  test("[S-135] [C-050] each failed attempt is abandoned with its error before the next one", async () => {
    const kernel = await openTestKernel({
      config: retries(2, 0),
      answers: [UNAVAILABLE, UNAVAILABLE, { text: "there" }],
    });
    const { end, events } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: "there" });
    expect(
      events
        .map(({ payload }) => payload.type)
        .filter((type) => type === "model_attempt_started" || type === "attempt_abandoned"),
    ).toEqual([
      "model_attempt_started",
      "attempt_abandoned",
      "model_attempt_started",
      "attempt_abandoned",
      "model_attempt_started",
    ]);
    expect(payloadsOf(events, "attempt_abandoned")[0]?.error).toMatchObject({ http_status: 500 });
  });

  test.for([
    { title: "standard", status: 500, config: retries(2, 0), requests: 3 },
    { title: "overload", status: 503, config: retries(0, 3), requests: 4 },
    { title: "no", status: 500, config: retries(0, 0), requests: 1 },
    { title: "no overload", status: 503, config: retries(4, 0), requests: 1 },
  ])(
    "[S-124] [S-130] [S-131] [C-048] the budget of $title retries ends the run with the last error",
    async ({ status, config, requests }) => {
      const kernel = await openTestKernel({ config });
      kernel.server.otherwise(failure(status, "no"));
      const { end } = await kernel.run("Hi");
      expect(end).toMatchObject({
        type: "run_failed",
        error: { code: "model_error", model_error: { http_status: status } },
      });
      expect(kernel.server.requests).toHaveLength(requests);
    },
  );

  test("[S-134] both classes share the count of retries on a chain entry", async () => {
    const kernel = await openTestKernel({
      config: retries(1, 3),
      answers: [failure(503, "busy"), UNAVAILABLE, { text: "not reached" }],
    });
    const { end } = await kernel.run("Hi");
    expect(end).toMatchObject({ error: { model_error: { http_status: 500 } } });
    expect(kernel.server.requests).toHaveLength(2);
  });

  test("[S-131] a negative budget has no end", async () => {
    const kernel = await openTestKernel({
      config: retries(-1, 0, 1),
      answers: [...Array.from({ length: 12 }, () => UNAVAILABLE), { text: "at last" }],
    });
    const { end } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: "at last" });
  });

  // a date has whole seconds and may be up to one of them too early
  test.for<[form: string, after: (nowMs: number) => string]>([
    ["seconds", () => "1"],
    ["a date", (nowMs) => new Date(nowMs + 2000).toUTCString()],
  ])("[B119] [S-132] [C-049] Retry-After as %s is waited for", async ([, after]) => {
    const kernel = await openTestKernel({
      config: retries(3, 3),
      answers: [
        ({ receivedAtMs }) => failure(429, "slow down", { "retry-after": after(receivedAtMs) }),
        { text: "ok" },
      ],
    });
    await kernel.run("Hi");
    const [first, second] = kernel.server.requests.map(({ receivedAtMs }) => receivedAtMs);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(950);
  });

  test("[S-133] [C-049] a cancel ends the wait at once", async () => {
    const kernel = await openTestKernel({
      answers: [failure(429, "slow down", { "retry-after": "3600" })],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("attempt_abandoned");
    await kernel.client.request(RunCancel, { run_id: runId, reason: "enough" });
    expect(await watch.end(runId)).toEqual({ type: "run_cancelled", reason: "enough" });
    expect(kernel.server.requests).toHaveLength(1);
  });

  test("[S-136] [C-050] the next model takes over after the budget and keeps the run", async () => {
    const read = { calls: [{ name: "read", arguments: { filePath: "a.txt" } }] };
    const kernel = await openTestKernel({
      config: `${SECOND_MODEL}\n${retries(1, 0)}`,
      agents: TWO_MODELS,
      answers: [UNAVAILABLE, UNAVAILABLE, read, { text: "done" }, { text: "next run" }],
    });
    const { sessionId, events } = await kernel.run("Hi");
    expect(payloadsOf(events, "model_fallback")).toEqual([
      {
        type: "model_fallback",
        from: { model: "custom.test/scripted", variant: null },
        to: { model: "custom.test/second", variant: null },
        from_fallback_index: 0,
        to_fallback_index: 1,
        attempts_on_from: 2,
        error: expect.objectContaining({ http_status: 500 }),
      },
    ]);
    expect(
      payloadsOf(events, "model_attempt_started").map((event) => [
        event.resolved_model.model,
        event.fallback_index,
        event.retry_ordinal,
      ]),
    ).toEqual([
      ["custom.test/scripted", 0, 0],
      ["custom.test/scripted", 0, 1],
      ["custom.test/second", 1, 0],
      ["custom.test/second", 1, 0],
    ]);
    const again = await kernel.run("Again", { session: sessionId });
    expect(payloadsOf(again.events, "model_attempt_started")[0]?.fallback_index).toBe(0);
  });

  test("[S-130] an error that no retry can help goes on to the next model at once", async () => {
    const kernel = await openTestKernel({
      config: SECOND_MODEL,
      agents: TWO_MODELS,
      answers: [REFUSED, { text: "from the second" }],
    });
    const { end, events } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: "from the second" });
    expect(payloadsOf(events, "model_fallback")[0]).toMatchObject({ attempts_on_from: 1 });
  });

  test("[S-135] the text of an abandoned attempt is void for the next request", async () => {
    const kernel = await openTestKernel({
      config: retries(1, 0),
      answers: [
        {
          events: [
            {
              id: "c",
              object: "chat.completion.chunk",
              created: 1,
              model: "scripted",
              choices: [{ index: 0, delta: { content: "stale words" }, finish_reason: null }],
            },
          ],
          end: "cut",
        },
        { text: "fresh words" },
        { text: "later" },
      ],
    });
    const { sessionId, end } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: "fresh words" });
    await kernel.run("Again", { session: sessionId });
    const bodies = JSON.stringify(kernel.server.requests.slice(1).map(({ body }) => body));
    expect(bodies).not.toContain("stale words");
    expect(bodies).toContain("fresh words");
  });
});

describe("the bound on calls", () => {
  const calls = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      name: "read",
      arguments: { filePath: `${index}.txt` },
    }));

  test("[T-018] [S-139] 65 calls are an invalid response and nothing is started", async () => {
    const kernel = await openTestKernel({ answers: [{ calls: calls(65) }] });
    const { end, watch } = await kernel.run("Hi");
    expect(end).toMatchObject({
      type: "run_failed",
      error: { model_error: { kind: "invalid_response" } },
    });
    expect(watch.types).not.toContain("tool_call_started");
    expect(watch.types).not.toContain("model_turn_committed");
  });

  test("[T-018] 64 calls all run", async () => {
    const kernel = await openTestKernel({ answers: [{ calls: calls(64) }, { text: "ok" }] });
    for (let index = 0; index < 64; index += 1) {
      await kernel.project.write(`${index}.txt`, `text ${index}`);
    }
    const { end, events } = await kernel.run("Hi");
    expect(end).toEqual({ type: "run_completed", final_text: "ok" });
    const outcomes = payloadsOf(events, "tool_call_terminated").map(({ outcome }) => outcome);
    expect(outcomes).toEqual(Array.from({ length: 64 }, () => "completed"));
  });
});
