import { PluginsStatus } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { delivered, type HookPlugin, writeHookPlugins } from "../../support/hook-plugin.ts";
import { type Answer, pick, type Wire } from "../../support/model-server.ts";
import { openTestKernel, type TestKernelOptions } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const DONE = { text: "done" };
const KEEP = () => ({ action: "keep" });

function openWith(
  plugins: readonly HookPlugin[],
  answers: readonly Answer[] = [DONE],
  options: TestKernelOptions = {},
) {
  return openTestKernel({
    answers,
    ...options,
    prepare: (project) => writeHookPlugins(project, plugins),
  });
}

const ALL: HookPlugin = {
  name: "all",
  hooks: {
    user_before_input: () => ({ action: "allow" }),
    model_before_select: () => ({ action: "allow" }),
    agent_before_start: () => ({}),
    model_before_request: () => ({ action: "keep" }),
    provider_before_headers: () => ({}),
    provider_before_request: () => ({ action: "keep" }),
    provider_after_response: () => ({}),
    message_end: () => ({ action: "keep" }),
    tool_before_call: () => ({ action: "allow" }),
    tool_after_result: () => ({ action: "keep" }),
  },
};

test("[E-161] the hooks of a run come in their order, and nothing of it changes when all keep it", async () => {
  const answers = [{ text: "let me see", calls: [bash("echo hello")] }, DONE];
  const kernel = await openWith([ALL], answers);
  const { watch } = await kernel.run("Hi");
  const attempt = [
    "model_before_request",
    "provider_before_headers",
    "provider_before_request",
    "provider_after_response",
    "message_end",
  ];
  expect((await delivered(kernel.project)).map(({ hook }) => hook)).toEqual([
    ...["user_before_input", "model_before_select", "agent_before_start"],
    ...attempt,
    ...["tool_before_call", "tool_after_result"],
    ...attempt,
  ]);
  const bare = await openTestKernel({ answers });
  const plain = await bare.run("Hi");
  expect(watch.types).toEqual(plain.watch.types);
  const withoutPlace = (kernelOf: typeof kernel, index: number) =>
    JSON.stringify(kernelOf.server.requests[index]?.body).replaceAll(kernelOf.project.cwd, "");
  for (const index of [0, 1]) expect(withoutPlace(kernel, index)).toBe(withoutPlace(bare, index));
});

test("[E-161] a request counts as prepared after its hooks and before it goes out", async () => {
  const kernel = await openWith([ALL]);
  const { watch } = await kernel.run("Hi");
  const at = (type: string) => watch.types.indexOf(type);
  expect(at("model_request_prepared")).toBe(at("model_attempt_started") + 1);
  const [started, prepared] = ["model_attempt_started", "model_request_prepared"].map((type) =>
    watch.events.find(({ payload }) => payload.type === type),
  );
  expect(started?.seq).toBeLessThan(prepared?.seq ?? 0);
});

describe("model_before_request", () => {
  test("[E-160] it is told messages, model and parameters; the next plugin sees what replaced them", async () => {
    const kernel = await openWith([
      {
        name: "first",
        hooks: {
          model_before_request: ({ messages }) => ({
            action: "replace",
            messages: [
              { role: "system", content: "Short." },
              ...messages.slice(1),
              { role: "assistant", content: [{ type: "text", text: "Yes?" }] },
              { role: "user", content: "Go on" },
            ],
            params_adjustments: { max_tokens: 77, temperature: 0.5, top_p: 0.9 },
          }),
        },
      },
      { name: "second", hooks: { model_before_request: KEEP } },
    ]);
    const { watch } = await kernel.run("Hi");
    const [first, second] = await delivered(kernel.project);
    expect(first).toMatchObject({
      model: { model: "custom.test/scripted", variant: null },
      params: {},
      messages: [{ role: "system" }, { role: "user", content: "Hi" }],
    });
    expect(second?.["params"]).toEqual({ max_tokens: 77, temperature: 0.5, top_p: 0.9 });
    expect(second?.["messages"]).toEqual([
      { role: "system", content: "Short." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "text", text: "Yes?" }] },
      { role: "user", content: "Go on" },
    ]);
    const body = kernel.server.requests[0]?.body;
    expect(pick(body, "messages")).toEqual([
      { role: "system", content: "Short." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Yes?" },
      { role: "user", content: "Go on" },
    ]);
    expect([pick(body, "max_tokens"), pick(body, "temperature"), pick(body, "top_p")]).toEqual([
      77, 0.5, 0.9,
    ]);
    expect(watch.payloads("user_input_submitted").map(({ input }) => input)).toEqual(["Hi"]);
  });

  test.for([
    [
      "an answer to no call",
      { role: "tool", content: [{ call_id: "no", name: "x", output: "", is_error: false }] },
    ],
    ["a system message in the middle", { role: "system", content: "later" }],
    ["nothing that the model could answer", { role: "assistant", content: [] }],
    ["a role of its own", { role: "developer", content: "do" }],
    ["a user who says nothing", { role: "user", content: " \n" }],
  ] as const)(
    "[E-168] messages with %s are skipped before the next plugin sees them",
    async ([, message]) => {
      const kernel = await openWith([
        {
          name: "bad",
          hooks: {
            model_before_request: ({ messages }) => ({
              action: "replace",
              messages: [...messages, JSON.parse(process.env["MESSAGE"] ?? "")],
            }),
          },
          keys: `env = { MESSAGE = ${JSON.stringify(JSON.stringify(message))} }`,
        },
        { name: "next", hooks: { model_before_request: KEEP } },
      ]);
      const { end } = await kernel.run("Hi");
      const [first, second] = await delivered(kernel.project);
      expect(second?.["messages"]).toEqual(first?.["messages"]);
      expect(pick(kernel.server.requests[0]?.body, "messages")).toHaveLength(2);
      expect(end.type).toBe("run_completed");
    },
  );

  test("[E-168] more tokens than the model gives are skipped", async () => {
    const kernel = await openWith([
      {
        name: "greedy",
        hooks: {
          model_before_request: () => ({
            action: "replace",
            params_adjustments: { max_tokens: 32_001 },
          }),
        },
      },
    ]);
    await kernel.run("Hi");
    expect(pick(kernel.server.requests[0]?.body, "max_tokens")).toBeUndefined();
  });

  test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
    "[E-168] over %s, what a plugin hands back unchanged keeps what it was not shown",
    async (wire) => {
      const answers = [
        { reasoning: "hm", text: "let me", calls: [{ id: "call_a", ...bash("echo hello") }] },
        DONE,
      ];
      const kernel = await openWith(
        [
          {
            name: "copy",
            hooks: {
              model_before_request: ({ messages }) => ({ action: "replace", messages }),
              provider_before_request: ({ payload }) => ({ action: "replace", payload }),
              message_end: ({ content }) => ({ action: "replace", content }),
            },
          },
        ],
        answers,
        { wire },
      );
      await kernel.run("Hi");
      const bare = await openTestKernel({ answers, wire });
      await bare.run("Hi");
      const bodyOf = (of: typeof kernel) =>
        JSON.stringify(of.server.requests[1]?.body).replaceAll(of.project.cwd, "");
      expect(bodyOf(kernel)).toBe(bodyOf(bare));
    },
  );
});

describe("provider_before_headers", () => {
  const HEADERS = `[providers."custom.test".headers]\nX-Team = "blue"\nX-Api-Token = "hidden"\n`;
  const withHeaders = { config: HEADERS } as const;

  test("[E-160] [E-168] it sets and deletes headers and never sees a credential", async () => {
    const kernel = await openWith(
      [
        {
          name: "first",
          hooks: {
            provider_before_headers: () => ({ set: { "X-Trace": "7" }, delete: ["x-team"] }),
          },
        },
        { name: "second", hooks: { provider_before_headers: () => ({}) } },
      ],
      [DONE],
      withHeaders,
    );
    await kernel.run("Hi");
    const told = await delivered(kernel.project);
    expect(told.map(({ headers }) => headers)).toEqual([{ "x-team": "blue" }, { "x-trace": "7" }]);
    const { headers } = kernel.server.requests[0] ?? {};
    expect(headers).toMatchObject({
      "x-trace": "7",
      "x-api-token": "hidden",
      authorization: "Bearer test-key",
    });
    expect(headers).not.toHaveProperty("x-team");
    expect(JSON.stringify(told)).not.toMatch(/test-key|hidden/);
  });

  test.for([
    ["set", "authorization"],
    ["set", "X-Api-Key"],
    ["set", "x-api-token"],
    ["set", "content-length"],
    ["set", "user-agent"],
    ["set", "not a name"],
    ["delete", "Authorization"],
    ["delete", "x-api-token"],
  ] as const)(
    "[E-168] it cannot %s %s, and then nothing of its change is done",
    async ([act, name]) => {
      const kernel = await openWith(
        [
          {
            name: "bold",
            hooks: {
              provider_before_headers: () => {
                const { ACT, NAME } = process.env as Record<string, string>;
                return ACT === "set"
                  ? { set: { "x-other": "1", [NAME ?? ""]: "mine" } }
                  : { set: { "x-other": "1" }, delete: [NAME] };
              },
            },
            keys: `env = { ACT = "${act}", NAME = "${name}" }`,
          },
        ],
        [DONE],
        withHeaders,
      );
      await kernel.run("Hi");
      const { headers = {} } = kernel.server.requests[0] ?? {};
      expect(headers).toMatchObject({ authorization: "Bearer test-key", "x-api-token": "hidden" });
      expect(Object.values(headers)).not.toContain("mine");
      expect(headers).not.toHaveProperty("x-other");
    },
  );

  test("[E-168] where nothing goes over HTTP a change is an unsupported capability", async () => {
    const kernel = await openWith([
      { name: "sets", hooks: { provider_before_headers: () => ({ set: { "x-a": "1" } }) } },
    ]);
    const selection = { agent: "primary", model: { model: "offline/script", variant: null } };
    const { end } = await kernel.run("say hi", { selection });
    expect(end).toMatchObject({ type: "run_completed", final_text: "hi" });
    expect((await delivered(kernel.project))[0]).toMatchObject({ headers: {} });
    const { plugins } = await kernel.client.request(PluginsStatus, {});
    const { diagnostics } = plugins.find(({ plugin }) => plugin === "sets") ?? {};
    expect(diagnostics?.[0]).toMatch(/^unsupported_capability: provider_before_headers: /);
  });
});

describe("provider_before_request", () => {
  test("[E-160] it is told the whole request and replaces it", async () => {
    const kernel = await openWith([
      {
        name: "slim",
        hooks: {
          provider_before_request: ({ payload }) => ({
            action: "replace",
            payload: {
              ...payload,
              tools: payload.tools.filter(({ name }) => name === "read"),
              max_tokens: 9,
            },
          }),
        },
      },
    ]);
    await kernel.run("Hi");
    const [told] = await delivered(kernel.project);
    expect(told).toMatchObject({
      payload: {
        model: "scripted",
        messages: [{ role: "system" }, { role: "user", content: "Hi" }],
      },
    });
    const body = kernel.server.requests[0]?.body;
    const tools = pick(body, "tools") as unknown[];
    expect(tools.map((tool) => pick(tool, "function", "name"))).toEqual(["read"]);
    expect(pick(body, "max_tokens")).toBe(9);
  });

  test.for([
    ["another model", { model: "dearer" }],
    [
      "a tool that the run does not have",
      { tools: [{ name: "nuke", description: "", parameters: {} }] },
    ],
  ] as const)("[E-166] a payload with %s is skipped", async ([, change]) => {
    const kernel = await openWith([
      {
        name: "bad",
        hooks: {
          provider_before_request: ({ payload }) => ({
            action: "replace",
            payload: Object.assign(payload, JSON.parse(process.env["CHANGE"] ?? "")),
          }),
        },
        keys: `env = { CHANGE = ${JSON.stringify(JSON.stringify(change))} }`,
      },
    ]);
    const { end } = await kernel.run("Hi");
    expect(pick(kernel.server.requests[0]?.body, "model")).toBe("scripted");
    expect(JSON.stringify(kernel.server.requests[0]?.body)).not.toContain("nuke");
    expect(end.type).toBe("run_completed");
  });
});

test("[E-160] provider_after_response sees status and headers of every attempt, without cookies and credentials", async () => {
  const kernel = await openWith(
    [{ name: "look", hooks: { provider_after_response: () => ({}) } }],
    [
      {
        status: 401,
        headers: {
          "x-request-id": "r1",
          "x-ratelimit-remaining-tokens": "9",
          "set-cookie": "a=b",
          "x-amz-security-token": "a=b",
          "x-api-key": "a=b",
        },
        body: { error: { message: "no" } },
      },
    ],
  );
  const { end } = await kernel.run("Hi");
  expect(end.type).toBe("run_failed");
  const [told] = await delivered(kernel.project);
  expect(told).toMatchObject({
    status: 401,
    headers: { "x-request-id": "r1", "x-ratelimit-remaining-tokens": "9" },
  });
  expect(JSON.stringify(told)).not.toContain("a=b");
});

describe("message_end", () => {
  test("[E-160] [E-167] what replaces the content is the durable turn, and its calls are those that run", async () => {
    const kernel = await openWith(
      [
        {
          name: "rewrite",
          hooks: {
            message_end: ({ content }) => ({
              action: "replace",
              content: content.map((part) =>
                part.type === "tool_call"
                  ? { ...part, input: { command: "echo replaced" } }
                  : { type: "text", text: "[redacted]" },
              ),
            }),
          },
        },
      ],
      [{ text: "my secret", calls: [{ id: "call_x", ...bash("echo original") }] }, DONE],
    );
    const { watch } = await kernel.run("Hi");
    const told = await delivered(kernel.project);
    expect(told[0]).toMatchObject({
      role: "assistant",
      content: [
        { type: "text", text: "my secret" },
        { type: "tool_call", id: "call_x", name: "bash", input: { command: "echo original" } },
      ],
    });
    const [turn] = watch.payloads("model_turn_committed");
    expect(turn?.turn.content).toMatchObject([
      { type: "text", text: "[redacted]" },
      { type: "tool_call", id: "call_x", input: { command: "echo replaced" } },
    ]);
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("replaced");
    const messages = JSON.stringify(pick(kernel.server.requests[1]?.body, "messages"));
    expect(messages).toContain("[redacted]");
    expect(messages).not.toMatch(/my secret|original/);
    expect(
      watch
        .payloads("text_delta")
        .map(({ text }) => text)
        .join(""),
    ).toContain("my secret");
  });

  test("[E-166] a call id that was used before is refused, and the turn stays as it was", async () => {
    const kernel = await openWith(
      [
        {
          name: "twice",
          hooks: {
            message_end: ({ content }, { count }) =>
              count === 1
                ? { action: "keep" }
                : {
                    action: "replace",
                    content: [
                      ...content,
                      {
                        type: "tool_call",
                        id: "call_x",
                        name: "bash",
                        input: { command: "touch made" },
                      },
                    ],
                  },
          },
        },
      ],
      [{ calls: [{ id: "call_x", ...bash("echo one") }] }, DONE],
    );
    const { watch, end } = await kernel.run("Hi");
    expect(watch.payloads("tool_call_started")).toHaveLength(1);
    expect(end).toMatchObject({ type: "run_completed", final_text: "done" });
  });
});
