import {
  SessionFork,
  type SessionId,
  SessionResume,
  SessionRevert,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { addChildSession } from "../../support/child-session.ts";
import { internalDocument } from "../../support/internal-agent.ts";
import { providerToml } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
} from "../../support/open-test-kernel.ts";
import { SECOND_MODEL } from "../../support/second-model.ts";
import { findLogs } from "../../support/session-log.ts";

const PRICES = `
[pricing.models."custom.test/scripted"]
input_per_million_usd = "2"
output_per_million_usd = "10"
`;
const CHILD = "01a22c7f-aff6-7000-aae4-2b4d70f8089d" as SessionId;
const usage = { input: 100, output: 10 };
const look = { calls: [{ name: "read", arguments: { filePath: "." } }], usage };
const done = { text: "done", usage };

const cancelledBy = (cap: string) => ({ type: "run_cancelled", reason: `budget_exceeded:${cap}` });

/** A kernel whose model would go on for ever. */
function tireless(config: string) {
  return openTestKernel({
    config,
    answers: Array.from({ length: 20 }, () => look),
  });
}

async function setBudget(kernel: TestKernel, budget: string): Promise<TestKernel> {
  const provider = providerToml(kernel.server);
  await kernel.project.writeState("config.toml", `${provider}\n${budget}`);
  return openTestKernel({ on: kernel });
}

describe("a budget that is reached ends the run before its next request", () => {
  test("[S-257] [C-244] max_cost_usd", async () => {
    // 100 × 2 + 10 × 10 millionths for each request
    const kernel = await tireless(`[budget]\nmax_cost_usd = "0.0009"\n${PRICES}`);
    const { end } = await kernel.run("go");
    expect(end).toMatchObject(cancelledBy("max_cost_usd"));
    expect(kernel.server.requests).toHaveLength(3);
  });

  test("[S-258] [C-244] max_tokens", async () => {
    const kernel = await tireless("[budget]\nmax_tokens = 221\n");
    const { end } = await kernel.run("go");
    expect(end).toMatchObject(cancelledBy("max_tokens"));
    expect(kernel.server.requests).toHaveLength(3);
  });

  test("[S-259] [C-244] max_turns", async () => {
    const kernel = await tireless("[budget]\nmax_turns = 2\n");
    const { end, watch } = await kernel.run("go");
    expect(end).toMatchObject(cancelledBy("max_turns"));
    expect(kernel.server.requests).toHaveLength(2);
    // What the last turn asked for was still done.
    expect(watch.payloads("tool_call_terminated").map(({ outcome }) => outcome)).toEqual([
      "completed",
      "completed",
    ]);
  });

  test("[S-260] [C-244] max_wall", async () => {
    const kernel = await tireless('[budget]\nmax_wall = "1ms"\n');
    const slow = { calls: [{ name: "bash", arguments: { command: "sleep 0.05" } }], usage };
    const { end } = await kernel.run("go", { mode: "yolo" });
    expect(end).toMatchObject(cancelledBy("max_wall"));
    const later = await setBudget(kernel, '[budget]\nmax_wall = "30ms"\n');
    later.server.enqueue(...Array.from({ length: 20 }, () => slow));
    const before = later.server.requests.length;
    const second = await later.run("go", { mode: "yolo" });
    expect(second.end).toMatchObject(cancelledBy("max_wall"));
    expect(later.server.requests.length - before).toBeLessThanOrEqual(1);
  });

  test.each([
    ["of an unknown tool", { name: "nothing", arguments: {} }],
    ["with unusable arguments", { name: "read", arguments: { filePath: 7 } }],
    ["that a rule denies", { name: "write", arguments: { filePath: "x", content: "x" } }],
  ])("[S-259] after calls %s, too", async (_, call) => {
    const kernel = await openTestKernel({
      config: "[budget]\nmax_turns = 2\n",
      agents: {
        primary: agentDocument({ ...ALLOW_ALL, write: { "*": "allow", x: "deny" } }),
      },
      answers: Array.from({ length: 20 }, () => ({ calls: [call], usage })),
    });
    const { end } = await kernel.run("go");
    expect(end).toMatchObject(cancelledBy("max_turns"));
    expect(kernel.server.requests).toHaveLength(2);
  });

  test("what fits exactly is not refused: a run that ends with its last allowed turn completes", async () => {
    const kernel = await openTestKernel({
      config: "[budget]\nmax_turns = 2\n",
      answers: [look, done],
    });
    expect((await kernel.run("go")).end).toMatchObject({ type: "run_completed" });
  });
});

describe("[S-261] a budget is that of the whole tree", () => {
  test("a new run in a used-up session ends before its first request, after a restart too", async () => {
    const kernel = await openTestKernel({
      config: "[budget]\nmax_turns = 2\n",
      answers: [done, done],
    });
    const { sessionId } = await kernel.run("one");
    await kernel.run("two", { session: sessionId });
    expect((await kernel.run("three", { session: sessionId })).end).toMatchObject(
      cancelledBy("max_turns"),
    );
    await kernel.close();
    const reopened = await openTestKernel({ on: kernel });
    const { end, events } = await reopened.run("four", { session: sessionId });
    expect(end).toMatchObject(cancelledBy("max_turns"));
    expect(events.map(({ payload }) => payload.type)).not.toContain("model_attempt_started");
    expect(kernel.server.requests).toHaveLength(2);
    reopened.server.enqueue(done);
    expect((await reopened.run("anew")).end).toMatchObject({ type: "run_completed" });
  });

  test("what children used counts, although none of them is open", async () => {
    const kernel = await openTestKernel({ answers: [done, done] });
    const { sessionId } = await kernel.run("one");
    await kernel.close();
    const [log = ""] = await findLogs(kernel.project);
    await addChildSession(log, CHILD);
    const exact = await setBudget(kernel, "[budget]\nmax_tokens = 221\n");
    expect((await exact.run("two", { session: sessionId })).end).toMatchObject({
      type: "run_completed",
    });
    await exact.close();
    const reopened = await openTestKernel({ on: exact });
    expect((await reopened.run("three", { session: sessionId })).end).toMatchObject(
      cancelledBy("max_tokens"),
    );
    expect(kernel.server.requests).toHaveLength(2);
  });

  test("what a revert hides counts on; what a fork copied was its source's", async () => {
    const kernel = await openTestKernel({
      config: "[budget]\nmax_turns = 2\n",
      answers: [done, done],
    });
    const { sessionId, watch } = await kernel.run("one");
    const through_seq = watch.events.at(-1)?.seq ?? 0;
    await kernel.run("two", { session: sessionId });
    const forked = await kernel.client.request(SessionFork, { session_id: sessionId, through_seq });
    await kernel.client.request(SessionRevert, { session_id: sessionId, through_seq });
    const ends = async (opened: TestKernel, session: SessionId) =>
      (await opened.run("more", { session })).end;
    expect(await ends(kernel, sessionId)).toMatchObject(cancelledBy("max_turns"));
    await kernel.close();
    const reopened = await openTestKernel({ on: kernel });
    await reopened.client.request(SessionResume, { session_id: sessionId });
    expect(await ends(reopened, sessionId)).toMatchObject(cancelledBy("max_turns"));
    reopened.server.enqueue(done, done);
    expect(await ends(reopened, forked.session_id)).toMatchObject({ type: "run_completed" });
    expect(await ends(reopened, forked.session_id)).toMatchObject({ type: "run_completed" });
    expect(await ends(reopened, forked.session_id)).toMatchObject(cancelledBy("max_turns"));
  });

  test("a failed attempt is asked about like any other: no retry is sent once it is used up", async () => {
    let failed = 0;
    const kernel = await openTestKernel({
      config: '[budget]\nmax_wall = "20ms"\n[model_retry]\nbackoff_ceiling_ms = 100\n',
    });
    kernel.server.otherwise(() => {
      failed += 1;
      return { status: 503, body: { error: { message: "later" } } };
    });
    const { end, watch } = await kernel.run("go");
    expect(end).toMatchObject(cancelledBy("max_wall"));
    expect(watch.payloads("attempt_abandoned")).toHaveLength(failed);
    expect(failed).toBeLessThanOrEqual(1);
  });
});

test("an unpriced request does not use up cost, and that is told once", async () => {
  const kernel = await openTestKernel({
    config: '[budget]\nmax_cost_usd = "0.000001"\n',
    answers: [look, look, done],
  });
  expect((await kernel.run("go")).end).toMatchObject({ type: "run_completed" });
  const told = kernel.logged.filter(({ message }) => message.includes("budget.max_cost_usd"));
  expect(told).toEqual([
    {
      level: "warn",
      message: expect.stringContaining("custom.test/scripted") as string,
      fields: { notice: true },
    },
  ]);
});

describe("internal agents", () => {
  const asking = { primary: agentDocument({ ...ALLOW_ALL, bash: "ask" }) };
  const call = (command: string) => ({ calls: [{ name: "bash", arguments: { command } }], usage });
  const allow = { text: '{"decision":"allow"}', usage };

  test("[S-261] what they used counts", async () => {
    const kernel = await openTestKernel({
      agents: asking,
      config: "[budget]\nmax_tokens = 300\n",
      answers: [call("echo one"), call("echo two"), done],
    });
    kernel.server.answerAsides("approval", allow);
    const { end, watch } = await kernel.run("go");
    // Two turns and the classifier's first answer; its second one may not be asked for.
    expect(end).toMatchObject(cancelledBy("max_tokens"));
    expect(kernel.server.requests).toHaveLength(2);
    expect(kernel.server.asides).toHaveLength(1);
    const outcomes = watch.payloads("tool_call_terminated").map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["completed", "cancelled"]);
  });

  test("[S-261] a classifier that may not be asked approves nothing, and the run says why it ends", async () => {
    const kernel = await openTestKernel({
      agents: asking,
      headless: true,
      config: "[budget]\nmax_turns = 1\n",
      answers: [call("echo one"), done],
    });
    kernel.server.answerAsides("approval", allow);
    const { end, watch } = await kernel.run("go");
    expect(end).toMatchObject(cancelledBy("max_turns"));
    expect(kernel.server.asides).toEqual([]);
    expect(watch.payloads("approval_finalized")[0]?.decision.status).toBe("cancelled");
  });

  test("[S-261] a title that may not be asked for is the beginning of the first message", async () => {
    const kernel = await openTestKernel({
      config: "[budget]\nmax_turns = 1\n[session_title]\n",
      answers: [done],
    });
    kernel.server.answerAsides("session_title", { text: "Asked" });
    const { end, watch } = await kernel.run("go on");
    expect(end).toMatchObject({ type: "run_completed" });
    const { payload } = await watch.event("session_title_committed");
    expect(payload.change).toEqual({ kind: "fallback_set", title: "go on" });
    expect(kernel.server.asides).toEqual([]);
  });

  test("[S-261] what one of their models used counts before the next one is asked", async () => {
    const models = ["custom.test/scripted", "custom.test/second"];
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument(ALLOW_ALL),
        title: internalDocument({
          models,
          prompt: "You name conversations between a user and us.",
        }),
      },
      config: `[budget]\nmax_tokens = 200\n[session_title]\n${SECOND_MODEL}`,
      answers: [done],
    });
    kernel.server.answerAsides("session_title", { text: " ", usage });
    const { watch } = await kernel.run("go on");
    const { payload } = await watch.event("session_title_committed");
    expect(payload.change).toEqual({ kind: "fallback_set", title: "go on" });
    expect(kernel.server.asides).toHaveLength(1);
  });
});
