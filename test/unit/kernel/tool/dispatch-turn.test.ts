import { CookieError } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { EventDraft } from "../../../../kernel/src/event/event-draft.ts";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";
import { KeyMutex } from "../../../../kernel/src/support/key-mutex.ts";
import {
  allowAll,
  declareDynamic,
  declareTool,
  openRoom,
  pluginFacts,
  preparedAs,
  RUN,
} from "./dispatch-fixture.ts";

const ECHO = declareTool({ name: "echo", concurrency: "parallel" });
const SLOW = declareTool({ name: "slow" });
/** What a run holds when it comes to its calls. */
const TITLED: EventDraft = {
  runId: RUN,
  payload: {
    type: "session_title_committed",
    change: { kind: "fallback_set", title: "Work" },
    input_through_seq: 1,
  },
};

describe("dispatch of one turn", () => {
  test("[T-019] [S-249] every call is prepared and started in one block before anything else", async () => {
    const room = openRoom([ECHO, declareDynamic("edit")], {
      rules: [
        { action: "plugin", resource: "*", effect: "ask" },
        { action: "write", resource: "*", effect: "ask" },
      ],
    });
    room.plugins.prepared = ({ arguments: { value } }) =>
      Promise.resolve(preparedAs(String(value)));
    await room.dispatch([
      ["edit", { value: "a" }],
      ["echo", { value: "b" }],
    ]);
    expect(room.trace.slice(0, 4)).toEqual([
      "prepare edit",
      "tool_call_started",
      "tool_call_started",
      "approval_requested",
    ]);
    expect(room.log.blocks[0]?.slice(0, 2)).toMatchObject([
      { type: "tool_call_started", tool: "edit", owner: { model_turn_seq: 1, content_index: 0 } },
      { type: "tool_call_started", tool: "echo", owner: { model_call_id: "call-1" } },
    ]);
  });

  test("[T-019] [S-249] starts, decisions that wait for nobody and refusals are one block, before any call", async () => {
    const room = openRoom([ECHO, declareDynamic("edit")], {
      rules: [{ action: "plugin", resource: "*", effect: "ask" }],
    });
    room.plugins.prepared = () => Promise.reject(new CookieError("execution_failed", "no"));
    await room.dispatch([
      ["echo", { value: "a" }],
      ["edit", { value: "missing" }],
      ["echo", { value: "b" }],
    ]);
    const approval = ["approval_requested", "approval_evaluated", "approval_finalized"];
    const started = "tool_call_started";
    const first = [started, started, started, ...approval, ...approval, "tool_call_terminated"];
    expect(room.log.blocks[0]?.map(({ type }) => type)).toEqual(first);
    const firstCall = room.trace.findIndex((entry) => entry.startsWith("call "));
    expect(firstCall).toBeGreaterThan(room.trace.lastIndexOf("approval_finalized"));
  });

  test("[S-176] the fourth request for one operation in a single turn is refused", async () => {
    const room = openRoom([ECHO], { rules: [{ action: "plugin", resource: "*", effect: "ask" }] });
    const outcomes = await room.dispatch(Array(5).fill(["echo", { value: "same" }]));
    expect(outcomes.map(({ error }) => error?.code ?? null)).toEqual([
      null,
      null,
      null,
      "permission_denied",
      "permission_denied",
    ]);
    expect(
      room.log.of("approval_doom_loop_detected").map(({ repetitions }) => repetitions),
    ).toEqual([4, 5]);
  });

  test("[T-020] permissions are resolved one by one before any call is sent", async () => {
    const room = openRoom([ECHO], { rules: [{ action: "plugin", resource: "*", effect: "ask" }] });
    const { gate } = room;
    room.gate = async (...args) => {
      room.trace.push("decide");
      await new Promise(setImmediate);
      const outcome = await gate(...args);
      room.trace.push("decided");
      return outcome;
    };
    await room.dispatch([
      ["echo", { value: "a" }],
      ["echo", { value: "b" }],
    ]);
    expect(room.trace.filter((entry) => entry.startsWith("decide"))).toEqual([
      "decide",
      "decided",
      "decide",
      "decided",
    ]);
    const approvals = room.trace.filter((entry) => entry.startsWith("approval_"));
    expect(approvals.filter((entry) => entry === "approval_requested")).toHaveLength(2);
    expect(approvals.indexOf("approval_finalized")).toBeLessThan(
      approvals.lastIndexOf("approval_requested"),
    );
    expect(room.trace.lastIndexOf("approval_finalized")).toBeLessThan(
      room.trace.indexOf("call echo a"),
    );
  });

  test("[T-021] [T-022] parallel calls start together, exclusive ones follow one by one", async () => {
    const room = openRoom([ECHO, SLOW]);
    await room.dispatch([
      ["slow", { value: "1" }],
      ["echo", { value: "2" }],
      ["slow", { value: "3" }],
      ["echo", { value: "4" }],
    ]);
    expect(room.trace.filter((entry) => /^(?:call|end) /.test(entry))).toEqual([
      "call echo 2",
      "call echo 4",
      "end echo 2",
      "end echo 4",
      "call slow 1",
      "end slow 1",
      "call slow 3",
      "end slow 3",
    ]);
  });

  test("[T-023] [T-024] terminal events come in completion order, results in model order", async () => {
    const room = openRoom([ECHO]);
    const second = createDeferred();
    room.plugins.answer = async ({ call }) => {
      const value = String(call.params.arguments["value"]);
      if (value === "first") await second.promise;
      return { content: value };
    };
    const running = room.dispatch([
      ["echo", { value: "first" }],
      ["echo", { value: "second" }],
    ]);
    await expect.poll(() => room.log.of("tool_call_terminated").length).toBe(1);
    second.resolve();
    const outcomes = await running;
    expect(room.log.of("tool_call_terminated").map(({ result }) => result?.output)).toEqual([
      "second",
      "first",
    ]);
    expect(outcomes.map(({ result }) => result?.output)).toEqual(["first", "second"]);
    expect(outcomes.map(({ toolCallId }) => toolCallId)).toEqual(
      room.log.of("tool_call_started").map(({ tool_call_id }) => tool_call_id),
    );
  });

  test("[T-025] a failed sibling cancels nothing and a failed preparation has both its events", async () => {
    const room = openRoom([ECHO, declareDynamic("edit")]);
    room.plugins.prepared = () =>
      Promise.reject(new CookieError("execution_failed", "no such file"));
    const outcomes = await room.dispatch([
      ["edit", { value: "missing" }],
      ["echo", { value: "b" }],
    ]);
    expect(outcomes.map(({ outcome, error }) => [outcome, error?.message])).toEqual([
      ["failed", "no such file"],
      ["completed", undefined],
    ]);
    expect(room.log.blocks.map((block) => block.map(({ type }) => type))).toEqual([
      ["tool_call_started", "tool_call_started", "tool_call_terminated"],
      ["tool_call_terminated"],
    ]);
  });

  test("[T-015] [S-003] a plain call appends twice and sends one request", async () => {
    const room = openRoom([ECHO]);
    await room.dispatch([["echo", { value: "x" }]]);
    expect(room.trace).toEqual([
      "tool_call_started",
      "call echo x",
      "end echo x",
      "tool_call_terminated",
    ]);
  });

  test("[T-008] names that are not published or not enabled fail distinctly", async () => {
    const room = openRoom([ECHO, declareTool({ name: "hidden" })], {
      rules: [{ action: "plugin", resource: "echo *", effect: "allow" }],
    });
    const outcomes = await room.dispatch([
      ["nowhere", {}],
      ["hidden", {}],
    ]);
    expect(outcomes.map(({ error }) => error)).toEqual([
      { code: "execution_failed", message: expect.stringContaining("not published") as unknown },
      {
        code: "execution_failed",
        message: expect.stringContaining("not enabled for this session") as unknown,
      },
    ]);
  });

  test("[T-008] [E-074] [C-064] a declaration that changed since publication is operation_changed", async () => {
    const room = openRoom([ECHO]);
    room.plugins.facts = [pluginFacts("builtin.test", [{ ...ECHO, description: "another tool" }])];
    const [outcome] = await room.dispatch([["echo", {}]]);
    expect(outcome?.error?.code).toBe("operation_changed");
    room.plugins.facts = [];
    const [gone] = await room.dispatch([["echo", {}]]);
    expect(gone?.error?.code).toBe("plugin_unavailable");
    expect(room.plugins.calls).toEqual([]);
  });

  test("[E-075] a program that was replaced after the call was permitted is operation_changed", async () => {
    const room = openRoom([ECHO]);
    const servedBy = (program: string) => {
      const facts = pluginFacts("builtin.test", [ECHO]);
      const tools = facts.tools.map((tool) => ({ ...tool, implementation: program.repeat(64) }));
      room.plugins.facts = [{ ...facts, tools }];
    };
    servedBy("a");
    const [same] = await room.dispatch([["echo", {}]]);
    expect(same?.outcome).toBe("completed");
    const decide = room.gate;
    room.gate = async (...args) => {
      const outcome = await decide(...args);
      servedBy("b");
      return outcome;
    };
    const [changed] = await room.dispatch([["echo", {}]]);
    expect(changed?.error?.code).toBe("operation_changed");
    expect(room.plugins.calls).toHaveLength(1);
  });

  test("[T-011] [T-012] [E-079] bad arguments fail before the plugin or a permission is asked", async () => {
    const room = openRoom([declareDynamic("edit")], {
      rules: [{ action: "write", resource: "*", effect: "ask" }],
    });
    const outcomes = await room.dispatch([["edit", { value: 5 }]]);
    expect(outcomes[0]).toMatchObject({
      outcome: "failed",
      result: null,
      error: {
        code: "invalid_arguments",
        message:
          'invalid arguments for edit: "value" must be string. Call edit again with corrected arguments.',
      },
    });
    expect(room.trace).toEqual(["tool_call_started", "tool_call_terminated"]);
  });

  test("[T-011] arguments that are no JSON are invalid_arguments", async () => {
    const room = openRoom([ECHO]);
    const part = {
      type: "tool_call" as const,
      id: "broken",
      provider_item_id: null,
      name: "echo",
      input: null,
      raw_input: '{"value":',
    };
    const [outcome] = await room.dispatch([], { calls: [{ part, contentIndex: 0 }] });
    expect(outcome?.error).toEqual({
      code: "invalid_arguments",
      message: expect.stringContaining("not valid JSON") as unknown,
    });
  });

  test("[T-045] [S-172] a denial is permission_denied with source, reason and feedback", async () => {
    const room = openRoom([ECHO], {
      rules: [
        { action: "plugin", resource: "*", effect: "allow" },
        { action: "plugin", resource: "echo secret*", effect: "deny" },
      ],
    });
    const outcomes = await room.dispatch([
      ["echo", { value: "secrets" }],
      ["echo", { value: "open" }],
    ]);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["failed", "completed"]);
    expect(JSON.parse(outcomes[0]?.error?.message ?? "")).toEqual({
      kind: "tool_denied",
      source: "policy",
      reason: "policy_denied",
      feedback: null,
    });
    expect(room.trace.filter((entry) => entry.startsWith("call"))).toEqual(["call echo open"]);
  });

  test("a denied call gives its prepared token back and tells whether a person was needed", async () => {
    const room = openRoom([declareDynamic("edit")], {
      rules: [{ action: "write", resource: "*", effect: "ask" }],
      mode: "auto_approve_n",
    });
    room.plugins.prepared = () => Promise.resolve(preparedAs("a"));
    const [outcome] = await room.dispatch([["edit", {}]]);
    expect([outcome?.error?.code, outcome?.escalated]).toEqual(["permission_denied", true]);
    expect(room.plugins.discarded).toEqual(["token a"]);
  });

  test("[T-027] equal keys never overlap, in other turns either", async () => {
    const keys = new KeyMutex();
    const keyed = declareDynamic("edit", { concurrency: "parallel" });
    const rooms = [openRoom([keyed], { keys }), openRoom([keyed], { keys })];
    let running = 0;
    let most = 0;
    for (const room of rooms) {
      room.plugins.prepared = () =>
        Promise.resolve(preparedAs("a", { serialize: ["file:1:2"], prepared: undefined }));
      room.plugins.answer = async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise(setImmediate);
        running -= 1;
        return { content: "" };
      };
    }
    await Promise.all(
      rooms.map((room) =>
        room.dispatch([
          ["edit", {}],
          ["edit", {}],
        ]),
      ),
    );
    expect(most).toBe(1);
  });

  test("[T-042] [S-042] [S-120] a cancelled run ends running calls with their output and never starts waiting ones", async () => {
    const room = openRoom([
      declareTool({
        name: "sleep",
        concurrency: "parallel",
        output: { mode: "named", streams: ["stdout"] },
      }),
      SLOW,
    ]);
    const abort = new AbortController();
    room.plugins.answer = async ({ call, signal }) => {
      await call.onProgress({ output: [{ stream: "stdout", data: "half" }] });
      abort.abort();
      expect(signal.aborted).toBe(true);
      throw new CookieError("cancelled", "the call was cancelled");
    };
    const outcomes = await room.dispatch(
      [
        ["slow", {}],
        ["sleep", {}],
      ],
      { signal: abort.signal },
    );
    expect(outcomes).toMatchObject([
      {
        outcome: "cancelled",
        result: null,
        error: { message: expect.stringContaining("never ran") as unknown },
      },
      {
        outcome: "cancelled",
        result: { output: "[stdout]\nhalf", retained_output: { incomplete: true } },
        error: { code: "cancelled", message: "the call was cancelled while it ran" },
      },
    ]);
    expect(room.log.of("tool_call_terminated")).toHaveLength(2);
  });

  test("[S-042] a run cancelled before dispatch still starts and terminates every call", async () => {
    const room = openRoom([ECHO]);
    const outcomes = await room.dispatch([["echo", { value: "x" }]], {
      signal: AbortSignal.abort(),
    });
    expect(outcomes[0]).toMatchObject({ outcome: "cancelled", result: null });
    expect(room.trace).toEqual(["tool_call_started", "tool_call_terminated"]);
  });

  test("[S-249] nothing runs when the start cannot be recorded", async () => {
    const room = openRoom([declareDynamic("edit")]);
    room.plugins.prepared = () => Promise.resolve(preparedAs("a"));
    room.log.failure = new CookieError("storage_failed", "the disk is full");
    await expect(room.dispatch([["edit", {}]])).rejects.toMatchObject({ code: "storage_failed" });
    expect([room.plugins.calls, room.plugins.discarded]).toEqual([[], ["token a"]]);
  });

  test("[S-046] a turn whose preparations take long is recorded without them", async () => {
    const room = openRoom([declareDynamic("edit")]);
    const recorded = createDeferred();
    room.log.observe = () => recorded.resolve();
    room.plugins.prepared = () => recorded.promise.then(() => preparedAs("a"));
    room.stages.log.hold([TITLED]);
    await room.dispatch([["edit", {}]]);
    expect(room.log.blocks.map((block) => block.map(({ type }) => type))).toEqual([
      ["session_title_committed"],
      ["tool_call_started"],
      ["tool_call_terminated"],
    ]);
  });

  test("[S-249] nothing runs when a turn could not be recorded while its preparations took long", async () => {
    const room = openRoom([declareDynamic("edit")]);
    const refused = createDeferred();
    const append = room.log.append.bind(room.log);
    room.log.append = (drafts) => {
      refused.resolve();
      return append(drafts);
    };
    room.plugins.prepared = () => {
      // The disk has space again when the next block is written.
      return refused.promise.then(() => {
        room.log.failure = undefined;
        return preparedAs("a");
      });
    };
    room.log.failure = new CookieError("storage_failed", "the disk is full");
    room.stages.log.hold([TITLED]);
    await expect(room.dispatch([["edit", {}]])).rejects.toMatchObject({ code: "storage_failed" });
    expect([room.plugins.calls, room.plugins.discarded]).toEqual([[], ["token a"]]);
    expect(room.log.blocks).toEqual([]);
  });

  test("a log that fails later stops the turn only after every started call has ended", async () => {
    const room = openRoom([ECHO, SLOW]);
    const ended: string[] = [];
    const refused = createDeferred();
    const append = room.log.append.bind(room.log);
    room.log.append = (drafts) => {
      if (room.log.failure) refused.resolve();
      return append(drafts);
    };
    room.plugins.answer = async ({ call }) => {
      room.log.failure = new CookieError("storage_failed", "the disk is full");
      const value = String(call.params.arguments["value"]);
      if (value === "b") await refused.promise;
      await new Promise(setImmediate);
      ended.push(value);
      return { content: "" };
    };
    const turn = room.dispatch([
      ["echo", { value: "a" }],
      ["echo", { value: "b" }],
      ["slow", { value: "c" }],
    ]);
    await expect(turn).rejects.toMatchObject({ code: "storage_failed" });
    expect(ended).toEqual(["a", "b"]);
  });

  test("sixty-four calls run in one turn", async () => {
    const room = openRoom([ECHO], { rules: allowAll() });
    const calls = Array.from({ length: 64 }, (_, i) => ["echo", { value: String(i) }] as const);
    const outcomes = await room.dispatch(calls);
    expect(outcomes.filter(({ outcome }) => outcome === "completed")).toHaveLength(64);
  });
});
