import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ModelStreamPart } from "../../../../kernel/src/model/bound-model.ts";
import {
  type Answer,
  type ModelServer,
  type ScriptedCall,
  startModelServer,
} from "../../../support/model-server.ts";
import {
  ADAPTORS,
  bind,
  collect,
  customProvider,
  failureOf,
  finishOf,
  request,
} from "./provider-fixture.ts";

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.close());

const answered = async (adaptor: string, answer: Answer, usedCallIds?: ReadonlySet<string>) => {
  server.enqueue(answer);
  const bound = await bind(customProvider({ adaptor, endpoint: server.baseUrl }));
  return collect(bound, request(usedCallIds === undefined ? {} : { usedCallIds }));
};
const turnOf = (parts: readonly ModelStreamPart[]) => {
  const last = parts.at(-1);
  if (last?.type !== "finish") throw new Error("no finish");
  return last;
};
const callsOf = (parts: readonly ModelStreamPart[]) =>
  turnOf(parts).turn.content.filter((part) => part.type === "tool_call");

const WIRES = ["openai-compatible", "openai-chat", "openai-responses", "anthropic"] as const;
const onEveryWire = <T>(cases: readonly T[]) =>
  WIRES.flatMap((wire) => cases.map((each) => [wire, each] as const));

describe("arguments (B112)", () => {
  test.for(onEveryWire(["", "  ", "null", "{}"]))(
    "%s: %o means no arguments",
    async ([wire, text]) => {
      const parts = await answered(wire, { calls: [{ name: "read", arguments: text }] });
      expect(callsOf(parts)).toMatchObject([{ input: {}, raw_input: null }]);
    },
  );

  test.for(onEveryWire(['{"path": }', "{path: 1}", '["a"]', '"text"']))(
    "%s: %s is kept as text and not as input",
    async ([wire, text]) => {
      const parts = await answered(wire, { calls: [{ name: "read", arguments: text }] });
      expect(callsOf(parts)).toMatchObject([{ input: null, raw_input: text }]);
      expect(parts.some((part) => part.type === "tool_arguments")).toBe(false);
      expect(turnOf(parts).turn.finish_reason).toBe("tool_calls");
    },
  );

  test("a call without any argument delta has no arguments", async () => {
    const parts = await answered("openai-chat", {
      events: [
        {
          choices: [
            {
              index: 0,
              delta: { tool_calls: [{ index: 0, id: "c", function: { name: "read" } }] },
            },
          ],
        },
        { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
      ],
    });
    expect(callsOf(parts)).toMatchObject([{ id: "c", input: {}, raw_input: null }]);
  });
});

describe("cut-off calls (B113, B115)", () => {
  const cut = '{"path":"a","text":"abc';

  test.for(
    WIRES.flatMap((wire) =>
      (["tool_calls", "length"] as const).map((finish) => [wire, finish] as const),
    ),
  )("%s: a call cut in its arguments under %s is left out", async ([wire, finish]) => {
    const calls: ScriptedCall[] = [
      { id: "whole", name: "read", arguments: { path: "x" } },
      { id: "cut", name: "read", arguments: cut },
    ];
    const parts = await answered(wire, { text: "t", calls, finish });
    expect(callsOf(parts).map((call) => call.id)).toEqual(["whole"]);
    expect(turnOf(parts)).toMatchObject({
      turn: { finish_reason: "length" },
      warnings: [expect.stringContaining(`after ${cut.length} bytes`)],
    });
  });

  test("responses: an incomplete status with an unfinished item is a length stop", async () => {
    const item = { type: "function_call", id: "fc_1", call_id: "call_9", name: "read" };
    const parts = await answered("openai-responses", {
      events: [
        { type: "response.created", response: { id: "r", created_at: 1, model: "m" } },
        {
          type: "response.output_item.added",
          output_index: 0,
          item: { ...item, arguments: "" },
        },
        {
          type: "response.function_call_arguments.delta",
          item_id: "fc_1",
          output_index: 0,
          delta: '{"path":"ab',
        },
        {
          type: "response.incomplete",
          response: {
            incomplete_details: { reason: "max_output_tokens" },
            usage: { input_tokens: 1, output_tokens: 2 },
          },
        },
      ],
    });
    expect(turnOf(parts)).toMatchObject({
      turn: { content: [], finish_reason: "length", usage: { output_tokens: 2 } },
      warnings: [expect.stringContaining("after 11 bytes")],
    });
  });

  test.for(WIRES)(
    "%s: a call named just before a length stop never got its arguments",
    async (wire) => {
      const parts = await answered(wire, {
        calls: [{ name: "read", arguments: "" }],
        finish: "length",
      });
      expect(callsOf(parts)).toEqual([]);
      expect(turnOf(parts).turn.finish_reason).toBe("length");
    },
  );
});

describe("call ids (B118)", () => {
  test.for(WIRES)("%s: one id with two arguments becomes two calls", async (wire) => {
    const calls = [
      { id: "call_1", name: "read", arguments: { path: "a" } },
      { id: "call_1", name: "read", arguments: { path: "b" } },
    ];
    const parts = await answered(wire, { calls });
    const made = callsOf(parts);
    expect(made.map((call) => call.input)).toEqual([{ path: "a" }, { path: "b" }]);
    expect(new Set(made.map((call) => call.id)).size).toBe(2);
    const named = parts.flatMap((part) => (part.type === "tool_named" ? [part.callId] : []));
    expect(named).toEqual(made.map((call) => call.id));
  });

  test.for(WIRES)("%s: the same call sent twice is one call", async (wire) => {
    const call = { id: "call_1", name: "read", arguments: { path: "a" } };
    const parts = await answered(wire, { calls: [call, call] });
    expect(callsOf(parts)).toHaveLength(1);
    expect(parts.filter((part) => part.type === "tool_arguments")).toHaveLength(1);
  });

  test.for(WIRES)("%s: two equal calls with ids of their own stay two", async (wire) => {
    const calls = ["a", "b"].map((id) => ({ id, name: "read", arguments: { path: "a" } }));
    expect(callsOf(await answered(wire, { calls }))).toHaveLength(2);
  });

  test.for(WIRES)("%s: an id the run has used is changed", async (wire) => {
    const parts = await answered(
      wire,
      { calls: [{ id: "call_1", name: "read" }] },
      new Set(["call_1"]),
    );
    expect(callsOf(parts)[0]?.id).toBe("call_1_2");
  });

  test("a chat server that repeats the whole call in its last chunk asks once", async () => {
    const whole = {
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: "read", arguments: '{"path":"a"}' },
    };
    const chunk = (delta: object, finish: string | null = null) => ({
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const parts = await answered("openai-compatible", {
      events: [chunk({ tool_calls: [whole] }), chunk({ tool_calls: [whole] }, "tool_calls")],
    });
    expect(callsOf(parts)).toMatchObject([{ id: "call_1", input: { path: "a" } }]);
  });

  test("more than 64 calls pass through for the run to judge", async () => {
    const calls = Array.from({ length: 65 }, (_, n) => ({
      name: "read",
      arguments: { path: `${n}` },
    }));
    expect(callsOf(await answered("anthropic", { calls }))).toHaveLength(65);
  });
});

describe("reasoning", () => {
  test.for([
    ["anthropic", { anthropic: { signature: "signed" } }],
    ["openai-responses", { openai: { itemId: "rs_1", reasoningEncryptedContent: "sealed" } }],
  ] as const)("%s keeps what replays it", async ([wire, metadata]) => {
    const parts = await answered(wire, { reasoning: "hm", text: "ok" });
    expect(parts[0]).toEqual({ type: "reasoning_delta", text: "hm" });
    expect(turnOf(parts).turn.content[0]).toMatchObject({
      type: "reasoning",
      text: "hm",
      metadata,
    });
  });

  test("redacted thinking is kept although it has no text", async () => {
    const parts = await answered("anthropic", {
      events: [
        {
          type: "message_start",
          message: {
            id: "m",
            model: "x",
            content: [],
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        },
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "redacted_thinking", data: "opaque" },
        },
        { type: "content_block_stop", index: 0 },
        { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "ok" } },
        { type: "content_block_stop", index: 1 },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
        { type: "message_stop" },
      ],
    });
    expect(turnOf(parts).turn.content[0]).toEqual({
      type: "reasoning",
      text: "",
      metadata: { anthropic: { redactedData: "opaque" } },
    });
  });

  test("reasoning of a compatible server streams before its text", async () => {
    const parts = await answered("openai-compatible", { reasoning: "hm", text: "ok" });
    expect(parts.map((part) => part.type)).toEqual(["reasoning_delta", "text_delta", "finish"]);
  });
});

describe("how a turn ends", () => {
  test.for(ADAPTORS)("%s: a length stop of plain text", async (adaptor) => {
    const parts = await answered(adaptor, { text: "abc", finish: "length" });
    expect(turnOf(parts).turn).toMatchObject({
      content: [{ type: "text", text: "abc" }],
      finish_reason: "length",
    });
  });

  test("calls under a stop reason are still calls", async () => {
    const parts = await answered("openai-compatible", {
      calls: [{ name: "read" }],
      finish: "stop",
    });
    expect(turnOf(parts).turn.finish_reason).toBe("tool_calls");
  });

  test("announced calls that never came are a stop", async () => {
    const parts = await answered("openai-chat", { text: "hm", finish: "tool_calls" });
    expect(turnOf(parts).turn.finish_reason).toBe("stop");
  });

  test("a refusal says so", async () => {
    server.enqueue({
      events: [
        {
          type: "message_start",
          message: {
            id: "m",
            model: "x",
            content: [],
            usage: { input_tokens: 1, output_tokens: 1 },
          },
        },
        { type: "message_delta", delta: { stop_reason: "refusal" }, usage: { output_tokens: 2 } },
        { type: "message_stop" },
      ],
    });
    const bound = await bind(customProvider({ adaptor: "anthropic", endpoint: server.baseUrl }));
    expect((await finishOf(bound)).turn.finish_reason).toBe("refused");
  });

  test("a response without bound is refused", async () => {
    const delta = { choices: [{ index: 0, delta: { content: "x".repeat(1024 * 1024) } }] };
    server.enqueue({ events: Array.from({ length: 9 }, () => delta), end: "hang" });
    const bound = await bind(customProvider({ endpoint: server.baseUrl }));
    expect(await failureOf(bound)).toMatchObject({
      kind: "invalid_response",
      message: expect.stringContaining("8 MiB") as string,
    });
  });
});
