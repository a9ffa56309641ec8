import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ModelServer, pick, startModelServer } from "../../../support/model-server.ts";
import {
  ADAPTORS,
  bind,
  CAPABILITIES,
  collect,
  customModel,
  customProvider,
  finishOf,
  READ_TOOL,
  request,
} from "./provider-fixture.ts";

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.close());

const at = (adaptor: string, changes = {}) =>
  customProvider({ adaptor, endpoint: server.baseUrl, ...changes });

describe("a response on every wire", () => {
  test.for(ADAPTORS)("%s streams text, then calls, then the finished turn", async (adaptor) => {
    server.enqueue({
      text: ["Hel", "lo"],
      calls: [{ id: "call_a", name: "read", arguments: { path: "x" } }],
    });
    const parts = await collect(await bind(at(adaptor)));
    const deltas = parts.filter((part) => part.type === "text_delta");
    expect(deltas.map((delta) => delta.text).join("")).toBe("Hello");
    expect(parts.slice(deltas.length).map((part) => part.type)).toEqual([
      "tool_named",
      "tool_arguments",
      "finish",
    ]);
    const finish = parts.at(-1);
    expect(finish).toMatchObject({
      turn: {
        content: [
          { type: "text", text: "Hello" },
          { type: "tool_call", id: "call_a", name: "read", input: { path: "x" }, raw_input: null },
        ],
        finish_reason: "tool_calls",
        usage: { input_tokens: 10, output_tokens: 5 },
      },
      warnings: [],
    });
  });

  test.for(ADAPTORS)("[C-152] %s sends one request and leaves calls to us", async (adaptor) => {
    server.enqueue({ status: 503, body: { error: { message: "busy" } } });
    await expect(collect(await bind(at(adaptor)))).rejects.toThrow(/HTTP 503/);
    expect(server.requests).toHaveLength(1);
  });
});

describe("[C-147] what each adaptor asks", () => {
  test.for([
    ["openai-compatible", "/v1/chat/completions"],
    ["openai-chat", "/v1/chat/completions"],
    ["openai-responses", "/v1/responses"],
    ["anthropic", "/v1/messages"],
    ["anthropic-compatible", "/v1/messages"],
  ])("%s calls %s with the wire id", async ([adaptor = "", path]) => {
    server.enqueue({ text: "ok" });
    await collect(await bind(at(adaptor)));
    const [sent] = server.requests;
    expect(sent?.path).toBe(path);
    expect(sent?.body).toMatchObject({ model: "wire-model", stream: true });
  });

  test("an authored api_path replaces the chat path", async () => {
    server.enqueue({ text: "ok" });
    const model = customModel({ options: { apiPath: "/custom/chat" } });
    await collect(await bind(at("openai-compatible", { model })));
    expect(server.requests[0]?.path).toBe("/v1/custom/chat");
  });

  test("[C-151] responses keeps nothing on the server and asks for encrypted reasoning", async () => {
    server.enqueue({ text: "ok" });
    await collect(await bind(at("openai-responses")));
    expect(server.requests[0]?.body).toMatchObject({
      store: false,
      include: ["reasoning.encrypted_content"],
      parallel_tool_calls: true,
      tools: [{ name: "read", strict: false }],
    });
  });

  test("openai-chat names the system role developer and limits completion tokens", async () => {
    server.enqueue({ text: "ok" });
    await collect(await bind(at("openai-chat")), request({ maxOutputTokens: 100 }));
    const body = server.requests[0]?.body;
    expect(pick(body, "messages", 0)).toEqual({ role: "developer", content: "You are a test." });
    expect(pick(body, "max_completion_tokens")).toBe(100);
  });

  test("openai-compatible names it system and forbids parallel calls where they are unsupported", async () => {
    server.enqueue({ text: "ok" }, { text: "ok" });
    const model = customModel({ capabilities: { ...CAPABILITIES, parallelToolCalls: false } });
    const bound = await bind(at("openai-compatible", { model }));
    await collect(bound);
    await collect(bound, request({ tools: [] }));
    const [withTools, without] = server.requests.map((each) => each.body);
    expect(pick(withTools, "messages", 0, "role")).toBe("system");
    expect(pick(withTools, "parallel_tool_calls")).toBe(false);
    expect(without).not.toHaveProperty("parallel_tool_calls");
    expect(without).not.toHaveProperty("tools");
  });

  test("the lowest of cap, default and model limit is asked for", async () => {
    server.enqueue({ text: "ok" }, { text: "ok" }, { text: "ok" });
    const model = customModel({
      defaults: { maxOutputTokens: 500, temperature: 0.5, stop: ["END"] },
    });
    const bound = await bind(at("openai-compatible", { model }));
    await collect(bound, request({ maxOutputTokens: 900 }));
    await collect(bound, request({ maxOutputTokens: 50 }));
    await collect(bound);
    expect(server.requests.map((each) => pick(each.body, "max_tokens"))).toEqual([500, 50, 500]);
    expect(server.requests[0]?.body).toMatchObject({ temperature: 0.5, stop: ["END"] });
  });
});

describe("credentials and headers", () => {
  test("[C-149] no-auth sends no authorization", async () => {
    for (const adaptor of ["openai-compatible", "openai-chat"]) {
      server.enqueue({ text: "ok" });
      const auth = { method: "no-auth-v1", values: {}, parameters: {} };
      await collect(await bind(at(adaptor, { auth })));
    }
    for (const sent of server.requests) {
      expect(sent.headers).not.toHaveProperty("authorization");
      expect(sent.headers).not.toHaveProperty("x-api-key");
    }
  });

  test("[C-149] header-key sends its header alone", async () => {
    server.enqueue({ text: "ok" });
    const provider = at("openai-compatible");
    const auth = {
      method: "api-key-header-v1",
      values: provider.auth.values,
      parameters: { header_name: "api-key" },
    };
    await collect(await bind({ ...provider, auth }));
    const headers = server.requests[0]?.headers;
    expect(headers?.["api-key"]).toBe("secret-key-value");
    expect(headers).not.toHaveProperty("authorization");
  });

  test.for(ADAPTORS)("[C-148] %s reads nothing from the environment", async (adaptor) => {
    const hostile = {
      OPENAI_API_KEY: "env-key",
      OPENAI_BASE_URL: "http://127.0.0.1:9/env",
      OPENAI_ORGANIZATION: "env-org",
      ANTHROPIC_API_KEY: "env-key",
      ANTHROPIC_AUTH_TOKEN: "env-token",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:9/env",
    };
    const before = { ...process.env };
    Object.assign(process.env, hostile);
    try {
      server.enqueue({ text: "ok" });
      await collect(await bind(at(adaptor)));
    } finally {
      for (const name of Object.keys(hostile)) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    }
    expect(JSON.stringify(server.requests[0]?.headers)).not.toMatch(/env-/);
    const key = adaptor.startsWith("anthropic") ? "x-api-key" : "authorization";
    expect(server.requests[0]?.headers[key]).toMatch(/^(?:Bearer )?secret-key-value$/);
  });

  test.for(ADAPTORS)(
    "[C-153] %s names this product, and authored headers go along",
    async (adaptor) => {
      server.enqueue({ text: "ok" });
      await collect(await bind(at(adaptor, { headers: { "x-team": "blue" } })));
      const headers = server.requests[0]?.headers;
      expect(headers?.["user-agent"]).toMatch(/^cookie-agent\/1\.2\.3 ai-sdk\//);
      expect(headers?.["x-team"]).toBe("blue");
    },
  );

  test("organization and project become OpenAI's headers", async () => {
    server.enqueue({ text: "ok" });
    const model = customModel({ options: { organization: "org", project: "proj" } });
    await collect(await bind(at("openai-chat", { model })));
    expect(server.requests[0]?.headers).toMatchObject({
      "openai-organization": "org",
      "openai-project": "proj",
    });
  });
});

describe("reasoning per family", () => {
  const withReasoning = (reasoning: object) =>
    customModel({
      variants: new Map([
        ["v", { operation: "add", defaults: {}, options: {}, reasoning: reasoning as never }],
      ]),
    });

  test.for([
    ["openai-compatible", { type: "effort", value: "high" }, { reasoning_effort: "high" }],
    ["openai-chat", { type: "effort", value: "low" }, { reasoning_effort: "low" }],
    ["openai-responses", { type: "effort", value: "low" }, { reasoning: { effort: "low" } }],
    ["anthropic", { type: "effort", value: "max" }, { output_config: { effort: "max" } }],
    ["anthropic", { type: "toggle", enabled: true }, { thinking: { type: "adaptive" } }],
    ["anthropic", { type: "toggle", enabled: false }, { thinking: { type: "disabled" } }],
    ["anthropic", { type: "budget_tokens", value: 0 }, { thinking: { type: "adaptive" } }],
    [
      "anthropic-compatible",
      { type: "budget_tokens", value: 2000 },
      { thinking: { type: "enabled", budget_tokens: 2000 } },
    ],
  ] as const)("%s maps %o", async ([adaptor, reasoning, expected]) => {
    server.enqueue({ text: "ok" });
    const bound = await bind(at(adaptor, { model: withReasoning(reasoning) }), { variant: "v" });
    await collect(bound);
    expect(server.requests[0]?.body).toMatchObject(expected);
  });

  test("[C-158] a thinking budget and the visible output stay within the model's limit", async () => {
    server.enqueue({ text: "ok" });
    const model = withReasoning({ type: "budget_tokens", value: 3000 });
    await collect(await bind(at("anthropic", { model }), { variant: "v" }));
    expect(pick(server.requests[0]?.body, "max_tokens")).toBe(CAPABILITIES.outputTokens);
  });

  test("beta features travel in Anthropic's header", async () => {
    server.enqueue({ text: "ok" });
    const model = customModel({ options: { beta: ["feature-1"] } });
    await collect(await bind(at("anthropic", { model })));
    expect(server.requests[0]?.headers["anthropic-beta"]).toContain("feature-1");
  });
});

describe("usage", () => {
  test("cache and reasoning tokens of the chat wire", async () => {
    server.enqueue({ text: "ok", usage: { input: 100, output: 20, cacheRead: 60, reasoning: 8 } });
    expect((await finishOf(await bind(at("openai-chat")))).turn.usage).toEqual({
      input_tokens: 100,
      input_tokens_no_cache: 40,
      input_tokens_cache_read: 60,
      input_tokens_cache_write: null,
      output_tokens: 20,
      output_tokens_text: 12,
      output_tokens_reasoning: 8,
    });
  });

  test("the inclusive input of the Anthropic wire is the sum of its three counts", async () => {
    server.enqueue({ text: "ok", usage: { input: 10, output: 5, cacheRead: 300, cacheWrite: 40 } });
    expect((await finishOf(await bind(at("anthropic")))).turn.usage).toMatchObject({
      input_tokens: 350,
      input_tokens_no_cache: 10,
      input_tokens_cache_read: 300,
      input_tokens_cache_write: 40,
      output_tokens: 5,
    });
  });

  test("what a server does not report is unknown, not zero", async () => {
    server.enqueue({
      events: [
        { choices: [{ index: 0, delta: { content: "hi" } }] },
        { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
      ],
    });
    const { turn } = await finishOf(await bind(at("openai-compatible")));
    expect(turn.usage).toMatchObject({ input_tokens: null, output_tokens: null });
  });
});

test("connections are kept alive over the requests of a run", async () => {
  const ports = new Set<string>();
  server.otherwise(({ headers }) => {
    ports.add(String(headers.connection));
    return { text: "ok" };
  });
  const bound = await bind(at("anthropic"));
  for (let turn = 0; turn < 3; turn += 1) await collect(bound, request({ tools: [READ_TOOL] }));
  expect([...ports]).toEqual(["keep-alive"]);
});
