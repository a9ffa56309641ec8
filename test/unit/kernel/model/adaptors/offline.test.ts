import type { AssistantPart } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { bindOfflineModel } from "../../../../../kernel/src/model/adaptors/offline.ts";
import type { HistoryMessage } from "../../../../../kernel/src/model/bound-model.ts";
import { collect, finishOf, READ_TOOL, request, user } from "../provider-fixture.ts";

const bound = bindOfflineModel();
const playTurn = async (history: HistoryMessage[], changes = {}) =>
  (await finishOf(bound, request({ history, tools: [READ_TOOL], ...changes }))).turn;

/** Plays a script to its end, answering every call with its arguments. */
async function playAll(script: string) {
  const history: HistoryMessage[] = [user(script)];
  const turns: (readonly AssistantPart[])[] = [];
  const used = new Set<string>();
  for (;;) {
    const turn = await playTurn(history, { usedCallIds: used });
    turns.push(turn.content);
    if (turn.finish_reason !== "tool_calls") return turns;
    history.push({ role: "assistant", content: turn.content, model: bound.selection });
    const calls = turn.content.filter((part) => part.type === "tool_call");
    for (const call of calls) used.add(call.id);
    history.push({
      role: "tool",
      results: calls.map((call) => ({
        callId: call.id,
        name: call.name,
        output: `${JSON.stringify(call.input)}\nsecond line`,
        isError: call.name === "bad",
        details: null,
      })),
    });
  }
}

const textOf = (content: readonly AssistantPart[] = []) =>
  content.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join("");

describe("a script", () => {
  test("plays its turns one by one and then accounts for every result", async () => {
    const turns = await playAll(
      'say first\ncall read {"path":"a"}\ncall bad {"path":"b"}\n---\ncall read {}',
    );
    expect(turns.map((turn) => turn.map((part) => part.type))).toEqual([
      ["text", "tool_call", "tool_call"],
      ["tool_call"],
      ["text"],
    ]);
    expect(textOf(turns[2])).toBe(
      [
        "Script done:",
        '- read: ok: {"path":"a"} second line',
        '- bad: failed: {"path":"b"} second line',
        "- read: ok: {} second line",
      ].join("\n"),
    );
  });

  test("streams what it is asked: text, names, arguments, and ids that are free", async () => {
    const parts = await collect(
      bound,
      request({
        history: [user("say hi\ncall read {}\ncall read {}")],
        usedCallIds: new Set(["call_1"]),
      }),
    );
    expect(parts.map((part) => part.type)).toEqual([
      "text_delta",
      "tool_named",
      "tool_arguments",
      "tool_named",
      "tool_arguments",
      "finish",
    ]);
    const ids = parts.flatMap((part) => (part.type === "tool_named" ? [part.callId] : []));
    expect(new Set([...ids, "call_1"]).size).toBe(3);
  });

  test("is read from the last input", async () => {
    const history: HistoryMessage[] = [
      user("call read {}"),
      { role: "assistant", content: [], model: bound.selection },
      user("say second"),
    ];
    expect(textOf((await playTurn(history)).content)).toBe("second");
  });

  test("text alone ends without tools", async () => {
    const turn = await playTurn([user("say one\nsay two")]);
    expect(textOf(turn.content)).toBe("one\ntwo");
    expect(turn.finish_reason).toBe("stop");
  });

  test.for([
    ["call", "a call needs a tool"],
    ["call read {oops", "the arguments of read are not a JSON object: {oops"],
    ["call read [1]", "the arguments of read are not a JSON object: [1]"],
    ["say a\nwhatever", "not a script line: whatever"],
  ])("the line %o is answered in words", async ([line = "", words]) => {
    const turn = await playTurn([user(line)]);
    expect(textOf(turn.content)).toContain(words);
    expect(turn.finish_reason).toBe("stop");
  });
});

test("anything else is answered by what this model is", async () => {
  expect(textOf((await playTurn([user("Please fix the bug.")])).content)).toContain(
    "offline model",
  );
  expect(textOf((await playTurn([])).content)).toContain("offline model");
});

test("a request without tools gets one fixed short answer", async () => {
  const turn = await playTurn([user("call read {}")], { tools: [] });
  expect(textOf(turn.content)).toBe("Offline session");
});

test("a cancellation is an abort", async () => {
  await expect(collect(bound, request(), AbortSignal.abort())).rejects.toMatchObject({
    summary: { kind: "abort" },
  });
});
