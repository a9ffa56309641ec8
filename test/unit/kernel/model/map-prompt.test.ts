import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HistoryMessage } from "../../../../kernel/src/model/bound-model.ts";
import { PromptMapper } from "../../../../kernel/src/model/map-prompt.ts";
import { type ModelServer, pick, startModelServer } from "../../../support/model-server.ts";
import { ADAPTORS, bind, collect, customProvider, request, user } from "./provider-fixture.ts";

const OWN = { model: "custom.test/m", variant: null };
const FOREIGN = { model: "custom.other/x", variant: null };

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.close());

const sent = async (adaptor: string, history: HistoryMessage[]) => {
  server.enqueue({ text: "ok" });
  await collect(
    await bind(customProvider({ adaptor, endpoint: server.baseUrl })),
    request({ history }),
  );
  return messagesIn(server.requests.at(-1)?.body);
};
const messagesIn = (body: unknown): unknown[] => {
  const messages = pick(body, "messages") ?? pick(body, "input");
  if (!Array.isArray(messages)) throw new Error("the request has no messages");
  return messages;
};

const call = (id: string, changes = {}) =>
  ({
    type: "tool_call",
    id,
    provider_item_id: null,
    name: "read",
    input: { path: "a" },
    raw_input: null,
    ...changes,
  }) as const;
const result = (callId: string, output: string, changes = {}) => ({
  callId,
  name: "read",
  output,
  isError: false,
  details: null,
  ...changes,
});

describe("a conversation with a call on every wire", () => {
  const history: HistoryMessage[] = [
    user("go"),
    { role: "assistant", content: [{ type: "text", text: "Reading." }, call("c1")], model: OWN },
    { role: "tool", results: [result("c1", "content")] },
    user("next"),
  ];

  test.for(["openai-compatible", "openai-chat"])("%s", async (adaptor) => {
    const messages = await sent(adaptor, history);
    expect(messages.slice(1)).toEqual([
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: "Reading.",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "content" },
      { role: "user", content: "next" },
    ]);
  });

  test("openai-responses", async () => {
    const input = await sent("openai-responses", history);
    expect(input.slice(2, 5)).toMatchObject([
      { role: "assistant", content: [{ type: "output_text", text: "Reading." }] },
      { type: "function_call", call_id: "c1", name: "read", arguments: '{"path":"a"}' },
      { type: "function_call_output", call_id: "c1", output: "content" },
    ]);
  });

  test("anthropic", async () => {
    const messages = await sent("anthropic", history);
    expect(pick(messages, 1, "content", 1)).toMatchObject({
      type: "tool_use",
      id: "c1",
      name: "read",
    });
    expect(messages[2]).toMatchObject({
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "c1", content: "content" },
        { type: "text", text: "next" },
      ],
    });
  });
});

describe("results", () => {
  test("an error is marked where the wire can, and details follow the output", async () => {
    const messages = await sent("anthropic", [
      user("go"),
      { role: "assistant", content: [call("c1"), call("c2")], model: OWN },
      {
        role: "tool",
        results: [
          result("c1", "no such file", { isError: true, details: { code: "missing" } }),
          result("c2", "fine", { details: {} }),
        ],
      },
    ]);
    expect(pick(messages, 2, "content")).toMatchObject([
      { tool_use_id: "c1", is_error: true, content: 'no such file\n{"code":"missing"}' },
      { tool_use_id: "c2", content: "fine" },
    ]);
  });

  test.for(ADAPTORS)(
    "%s: a call without a result gets one that says interrupted (B116)",
    async (adaptor) => {
      const messages = await sent(adaptor, [
        user("go"),
        { role: "assistant", content: [call("c1"), call("c2")], model: OWN },
        { role: "tool", results: [result("c2", "fine")] },
        user("again"),
      ]);
      const text = JSON.stringify(messages);
      expect(text).toContain("interrupted before it had a result");
      const answered = text.match(/"(?:tool_use_id|tool_call_id|call_id)":"c[12]"/g) ?? [];
      expect(answered.filter((each) => each.includes("c1")).length).toBeGreaterThan(0);
      expect(answered.filter((each) => each.includes("c2")).length).toBeGreaterThan(0);
    },
  );
});

describe("what a model made up does not spoil the history", () => {
  test("malformed arguments are replayed as none", async () => {
    const messages = await sent("anthropic", [
      user("go"),
      { role: "assistant", content: [call("c1", { input: null, raw_input: "{x" })], model: OWN },
      { role: "tool", results: [result("c1", "bad arguments", { isError: true })] },
    ]);
    expect(pick(messages, 1, "content", 0, "input")).toEqual({});
  });

  test("an impossible name and an impossible id are replayed in a form the wire accepts", async () => {
    const messages = await sent("anthropic", [
      user("go"),
      {
        role: "assistant",
        content: [call("functions.read:0", { name: "read file!" })],
        model: FOREIGN,
      },
      { role: "tool", results: [result("functions.read:0", "x", { name: "read file!" })] },
    ]);
    const use = pick(messages, 1, "content", 0);
    expect(pick(use, "name")).toBe("read_file_");
    expect(pick(use, "id")).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(pick(messages, 2, "content", 0, "tool_use_id")).toBe(pick(use, "id"));
  });

  test("a compatible server gets its own ids back", async () => {
    const messages = await sent("openai-compatible", [
      user("go"),
      { role: "assistant", content: [call("functions.read:0")], model: OWN },
      { role: "tool", results: [result("functions.read:0", "x")] },
    ]);
    expect(pick(messages, 2, "tool_calls", 0, "id")).toBe("functions.read:0");
    expect(pick(messages, 3, "tool_call_id")).toBe("functions.read:0");
  });

  test.for(ADAPTORS)("%s: a turn of which nothing can be sent is left out", async (adaptor) => {
    const messages = await sent(adaptor, [
      user("go"),
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "hm", metadata: { anthropic: { signature: "s" } } },
          { type: "text", text: " " },
        ],
        model: OWN,
      },
      user("again"),
    ]);
    const roles = messages.map((each) => pick(each, "role"));
    expect(roles).not.toContain("assistant");
  });
});

describe("native parts", () => {
  const thought = (model: typeof OWN): HistoryMessage[] => [
    user("go"),
    {
      role: "assistant",
      content: [
        {
          type: "reasoning",
          text: "hm",
          metadata: {
            anthropic: { signature: "signed" },
            openai: { itemId: "rs_1", reasoningEncryptedContent: "sealed" },
          },
        },
        { type: "text", text: "said", metadata: { openai: { itemId: "msg_1" } } },
      ],
      model,
    },
    user("again"),
  ];

  test("a signature goes back to the model that signed", async () => {
    const messages = await sent("anthropic", thought(OWN));
    expect(pick(messages, 1, "content")).toEqual([
      { type: "thinking", thinking: "hm", signature: "signed" },
      { type: "text", text: "said" },
    ]);
  });

  test("encrypted reasoning goes back to the model that wrote it", async () => {
    const input = await sent("openai-responses", thought(OWN));
    expect(input[2]).toMatchObject({ type: "reasoning", id: "rs_1", encrypted_content: "sealed" });
    expect(input[3]).toMatchObject({ role: "assistant", id: "msg_1" });
  });

  test.for(ADAPTORS)("%s: another model gets the text alone", async (adaptor) => {
    const messages = await sent(adaptor, thought(FOREIGN));
    const text = JSON.stringify(messages);
    expect(text).toContain("said");
    expect(text).not.toMatch(/signed|sealed|rs_1|msg_1|"hm"/);
  });

  test("plain reasoning goes back to the compatible model it came from", async () => {
    const content = [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "said" },
    ] as const;
    const messages = await sent("openai-compatible", [
      user("go"),
      { role: "assistant", content, model: OWN },
      user("again"),
    ]);
    expect(messages[2]).toMatchObject({ role: "assistant", reasoning_content: "hm" });
  });
});

test("a message object is mapped once, however many requests carry it", () => {
  const mapper = new PromptMapper({
    modelKey: OWN.model,
    metadataKey: "anthropic",
    replayKey: "anthropic",
    plainReasoning: false,
    portableIds: true,
  });
  const history: HistoryMessage[] = [
    user("go"),
    { role: "assistant", content: [call("c1")], model: OWN },
    { role: "tool", results: [result("c1", "x")] },
  ];
  const first = mapper.map("", history);
  const second = mapper.map("", [...history, user("more")]);
  expect(second).toHaveLength(4);
  first.forEach((message, index) => {
    expect(second[index]).toBe(message);
  });
});
