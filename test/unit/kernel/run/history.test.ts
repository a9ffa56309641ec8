import type {
  EventPayload,
  EventPayloadOf,
  ModelTurn,
  StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { History, renderResult } from "../../../../kernel/src/run/history.ts";

const MODEL = { model: "custom.test/model", variant: null };
let seq = 0;

function event(payload: unknown): StoredEvent {
  seq += 1;
  return { session_id: "s", run_id: "r", seq, timestamp: "t", payload } as unknown as StoredEvent;
}

const said = (input: string) => event({ type: "user_input_submitted", input });

function turn(turnSeq: number, ...content: ModelTurn["content"]): StoredEvent {
  return event({
    type: "model_turn_committed",
    model_turn_seq: turnSeq,
    resolved_model: MODEL,
    turn: { content },
  });
}

const text = (value: string) =>
  ({ type: "text" as const, text: value }) as ModelTurn["content"][number];
const call = (id: string) =>
  ({
    type: "tool_call",
    id,
    name: "read",
    input: {},
    raw_input: null,
  }) as unknown as ModelTurn["content"][number];

function ended(turnSeq: number, index: number, output: string): StoredEvent {
  return event({
    type: "tool_call_terminated",
    owner: { model_turn_seq: turnSeq, content_index: index },
    outcome: "completed",
    result: { output, metadata: {} },
    error: null,
  });
}

function fold(...events: StoredEvent[]): History {
  const history = new History();
  for (const each of events) history.apply(each);
  return history;
}

describe("messages", () => {
  test("[T-024] results stand in model order, whatever order the calls ended in", () => {
    const { messages } = fold(
      said("Hi"),
      turn(1, text("look"), call("a"), call("b")),
      ended(1, 2, "of b"),
      ended(1, 1, "of a"),
    );
    expect(messages).toEqual([
      { role: "user", text: "Hi" },
      { role: "assistant", content: [text("look"), call("a"), call("b")], model: MODEL },
      {
        role: "tool",
        results: [
          { callId: "a", name: "read", output: "of a", isError: false, details: null },
          { callId: "b", name: "read", output: "of b", isError: false, details: null },
        ],
      },
    ]);
  });

  test("[B116] a call without an end is answered by a note", () => {
    const { messages } = fold(
      said("Hi"),
      turn(1, call("a"), call("b")),
      ended(1, 0, "of a"),
      said("More"),
    );
    expect(messages[2]).toMatchObject({
      results: [
        { output: "of a" },
        { isError: true, output: expect.stringContaining("interrupted") },
      ],
    });
  });

  test("[B116] an end that comes after a restart still answers its call", () => {
    const { messages } = fold(
      turn(1, call("a")),
      event({ type: "run_interrupted", reason: "daemon restart" }),
      ended(1, 0, "late"),
      said("More"),
    );
    expect(messages[1]).toMatchObject({ results: [{ output: "late" }] });
  });

  test("a turn without content leaves no message", () => {
    expect(fold(said("Hi"), turn(1)).messages).toHaveLength(1);
  });

  test("[S-146] what was admitted is not seen before it is submitted", () => {
    const { messages } = fold(said("Hi"), event({ type: "user_input_admitted", input: "later" }));
    expect(messages).toHaveLength(1);
  });

  test("[B118] the ids of calls are remembered", () => {
    expect([...fold(turn(1, call("a")), turn(2, call("b"))).usedCallIds]).toEqual(["a", "b"]);
  });
});

describe("results", () => {
  const render = (result: unknown, error: unknown) =>
    renderResult({
      type: "tool_call_terminated",
      result,
      error,
    } as unknown as EventPayloadOf<"tool_call_terminated"> & EventPayload);

  test("a failure keeps the output and adds the error", () => {
    const result = { output: "half", metadata: {} };
    expect(render(result, { code: "timeout", message: "too slow" })).toEqual({
      output: "half\n\n[error timeout] too slow",
      isError: true,
      details: null,
    });
  });

  test("[T-130] an answer that calls itself an error is one", () => {
    const result = { output: "no", metadata: { plugin: { is_error: true } } };
    expect(render(result, null)).toMatchObject({ output: "no", isError: true });
  });

  test.for([
    [{ reason: "user_rejected", feedback: "use make" }, "user_rejected: use make"],
    [{ reason: "policy_denied", feedback: null }, "policy_denied"],
  ])("[T-045] [S-172] a denial %j reads as %s", ([denial, expected]) => {
    const message = JSON.stringify({ kind: "tool_denied", source: "user", ...(denial as object) });
    expect(render(null, { code: "permission_denied", message }).output).toBe(
      `[error permission_denied] ${String(expected)}`,
    );
  });
});
