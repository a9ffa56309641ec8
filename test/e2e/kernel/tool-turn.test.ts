import { SessionPermissionSet } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { pick } from "../../support/model-server.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";
import { payloadsOf } from "../../support/session-watch.ts";

const read = (filePath: string) => ({ name: "read", arguments: { filePath } });
const bash = (command: string) => ({ name: "bash", arguments: { command } });
const DONE = { text: "done" };

/** The tool messages of a Chat Completions request. */
function toolMessages(body: unknown): { id: string; content: string }[] {
  const messages = pick(body, "messages") as { role: string }[];
  return messages
    .filter(({ role }) => role === "tool")
    .map((message) => ({
      id: String(pick(message, "tool_call_id")),
      content: String(pick(message, "content")),
    }));
}

describe("order", () => {
  test("[T-019] [S-140] [E-087] every call is started in model order before any approval is asked for", async () => {
    const kernel = await openTestKernel({
      agents: { primary: agentDocument({ ...ALLOW_ALL, bash: "ask" }) },
      answers: [{ calls: [bash("echo 1"), read("a.txt"), bash("echo 2")] }, DONE],
    });
    const { events } = await kernel.run("Hi", { mode: "yolo" });
    const order = events
      .map(({ payload }) => payload)
      .flatMap((payload) =>
        payload.type === "tool_call_started"
          ? [`started ${payload.owner.content_index}`]
          : payload.type === "approval_requested"
            ? ["asked"]
            : [],
      );
    expect(order).toEqual(["started 0", "started 1", "started 2", "asked", "asked"]);
  });

  test("[T-020] [S-141] nothing runs before the last permission is decided", async () => {
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument({ ...ALLOW_ALL, bash: { "*": "allow", "echo asked": "ask" } }),
      },
      answers: [{ calls: [bash("echo ran > first.txt"), bash("echo asked")] }, DONE],
    });
    const { events } = await kernel.run("Hi", { mode: "yolo" });
    const decided = events.findIndex(({ payload }) => payload.type === "approval_finalized");
    const ended = events.findIndex(({ payload }) => payload.type === "tool_call_terminated");
    expect(decided).toBeGreaterThan(0);
    expect(ended).toBeGreaterThan(decided);
  });

  test("[T-021] [T-023] [T-024] [S-142] [S-143] parallel calls overlap, end as they end, and are answered in model order", async () => {
    const kernel = await openTestKernel({
      answers: [
        {
          calls: [bash("while ! [ -e go ]; do sleep 0.02; done; echo slow"), bash("echo fast")],
        },
        DONE,
      ],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("tool_call_terminated", ({ owner }) => owner.content_index === 1);
    await kernel.project.write("go", "");
    await watch.end(runId);
    const ends = watch.payloads("tool_call_terminated");
    expect(ends.map(({ owner }) => owner.content_index)).toEqual([1, 0]);
    const results = toolMessages(kernel.server.requests[1]?.body);
    expect(results.map(({ content }) => content.match(/slow|fast/)?.[0])).toEqual(["slow", "fast"]);
  });

  test("[T-022] [S-142] exclusive calls run one by one after the parallel ones", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("slow"),
      answers: [
        {
          calls: [
            { name: "wait_one", arguments: { ms: 30 } },
            { name: "wait_one", arguments: { ms: 1 } },
            bash("sleep 0.2"),
          ],
        },
        DONE,
      ],
    });
    const { events } = await kernel.run("Hi");
    const ends = payloadsOf(events, "tool_call_terminated");
    expect(ends.map(({ owner }) => owner.content_index)).toEqual([2, 0, 1]);
    const overlaps = ends.slice(1).map(({ result }) => {
      const answer: unknown = JSON.parse(result?.output ?? "null");
      return pick(answer, "most");
    });
    expect(overlaps).toEqual([1, 1]);
  });

  test("[T-028] two writes to one new path: one of them wins, the other is told that it changed", async () => {
    const write = (content: string) => ({
      name: "write",
      arguments: { filePath: "new.txt", content },
    });
    const kernel = await openTestKernel({ answers: [{ calls: [write("a"), write("b")] }, DONE] });
    const { events } = await kernel.run("Hi");
    const ends = payloadsOf(events, "tool_call_terminated");
    expect(ends.map(({ error }) => error?.code ?? "ok")).toEqual(["ok", "operation_changed"]);
  });
});

describe("what a model gets wrong", () => {
  test.for([
    ["[B112] arguments that are not there", ""],
    ["[B112] blank arguments", "  "],
    ["[B112] null as arguments", "null"],
  ])("%s count as none", async ([, text = ""]) => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      answers: [{ calls: [{ name: "describe_process", arguments: text }] }, DONE],
    });
    const { events } = await kernel.run("Hi");
    expect(payloadsOf(events, "tool_call_terminated")[0]?.outcome).toBe("completed");
  });

  test("[B112] malformed arguments are an error to the model and are not run", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [{ name: "bash", arguments: '{"command": touch}' }] }, DONE],
    });
    const { end, events } = await kernel.run("Hi");
    expect(payloadsOf(events, "tool_call_terminated")[0]?.error?.code).toBe("invalid_arguments");
    expect(toolMessages(kernel.server.requests[1]?.body)[0]?.content).toContain(
      "invalid_arguments",
    );
    expect(end.type).toBe("run_completed");
  });

  test.for([
    ["[B113] a stop that claims tool calls", "tool_calls", "openai-chat"],
    ["[B113] a length stop", "length", "openai-chat"],
    ["[B115] an incomplete response", "length", "openai-responses"],
  ] as const)("%s with arguments cut in the middle runs nothing", async ([, finish, wire]) => {
    const kernel = await openTestKernel({
      wire,
      answers: [{ calls: [{ name: "bash", arguments: '{"command": "touch made' }], finish }],
    });
    const { end, events, watch } = await kernel.run("Hi");
    const [turn] = payloadsOf(events, "model_turn_committed");
    expect(turn?.turn.finish_reason).toBe("length");
    expect(turn?.warnings).toContainEqual(expect.stringContaining("cut off after 23 bytes"));
    expect(watch.types).not.toContain("tool_call_started");
    expect(end.type).toBe("run_completed");
  });

  test("[B118] calls that share an id run once each and are answered apart", async () => {
    const kernel = await openTestKernel({
      answers: [
        {
          calls: [
            { id: "call_1", ...bash("echo one") },
            { id: "call_1", ...bash("echo two") },
          ],
        },
        { calls: [{ id: "call_1", ...bash("echo three") }] },
        DONE,
      ],
    });
    const { end } = await kernel.run("Hi");
    expect(end.type).toBe("run_completed");
    const results = toolMessages(kernel.server.requests[2]?.body);
    expect(results.map(({ content }) => content.match(/one|two|three/)?.[0])).toEqual([
      "one",
      "two",
      "three",
    ]);
    expect(new Set(results.map(({ id }) => id)).size).toBe(3);
  });

  test("[T-025] an unknown tool fails with both events and the others run", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [{ name: "no_such_tool" }, bash("echo ran")] }, DONE],
    });
    const { end, events } = await kernel.run("Hi");
    expect(payloadsOf(events, "tool_call_started")).toHaveLength(2);
    const outcomes = payloadsOf(events, "tool_call_terminated").map((call) => call.outcome);
    expect(outcomes).toEqual(["failed", "completed"]);
    expect(end.type).toBe("run_completed");
  });

  test("[T-025] arguments that do not fit the schema fail that call alone", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [{ name: "bash", arguments: { command: 5 } }, bash("echo ran")] }, DONE],
    });
    const { events } = await kernel.run("Hi");
    const ends = payloadsOf(events, "tool_call_terminated");
    expect(ends.map(({ outcome, error }) => error?.code ?? outcome)).toEqual([
      "invalid_arguments",
      "completed",
    ]);
  });
});

describe("refusals", () => {
  test("[T-045] [S-144] [S-172] a denied call fails with its reason and the turn goes on", async () => {
    const kernel = await openTestKernel({
      agents: { primary: agentDocument({ ...ALLOW_ALL, bash: { "*": "allow", "rm *": "deny" } }) },
      answers: [{ calls: [bash("rm -rf ."), bash("echo ran")] }, DONE],
    });
    const { end, events, watch } = await kernel.run("Hi");
    const [denied, ran] = payloadsOf(events, "tool_call_terminated");
    expect(denied?.error?.code).toBe("permission_denied");
    expect(JSON.parse(denied?.error?.message ?? "")).toEqual({
      kind: "tool_denied",
      source: "policy",
      reason: "policy_denied",
      feedback: null,
    });
    expect(ran?.outcome).toBe("completed");
    expect(toolMessages(kernel.server.requests[1]?.body)[0]?.content).toContain("policy_denied");
    expect(watch.types).not.toContain("approval_requested");
    expect(end.type).toBe("run_completed");
  });

  test("[S-159] a tool whose action has no rule is neither published nor run", async () => {
    const kernel = await openTestKernel({
      agents: { primary: agentDocument({ read: "allow" }) },
      answers: [{ calls: [bash("touch made")] }, DONE],
    });
    const { events } = await kernel.run("Hi");
    const tools = pick(kernel.server.requests[0]?.body, "tools") as unknown[];
    expect(tools.map((tool) => pick(tool, "function", "name"))).toEqual(["read"]);
    expect(payloadsOf(events, "tool_call_terminated")[0]?.error?.message).toMatch(/not enabled/);
  });

  test("[S-126] a rule set during a run counts for its next call", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const kernel = await openTestKernel({
      answers: [
        { calls: [bash("echo one")] },
        { text: "thinking", calls: [bash("echo two")], until: held },
        DONE,
      ],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, "Hi");
    await watch.event("tool_call_terminated");
    await kernel.client.request(SessionPermissionSet, {
      session_id: session,
      action: "bash",
      resource: "echo two",
      effect: "deny",
    });
    release();
    await watch.end(runId);
    expect(watch.payloads("tool_call_terminated").map(({ error }) => error?.code ?? "ok")).toEqual([
      "ok",
      "permission_denied",
    ]);
  });
});
