import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HistoryMessage } from "../../../../kernel/src/model/bound-model.ts";
import { type ModelServer, pick, startModelServer } from "../../../support/model-server.ts";
import { bind, collect, customModel, customProvider, request, user } from "./provider-fixture.ts";

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.close());

const HOUR = { type: "ephemeral", ttl: "1h" };
const MINUTES = { type: "ephemeral", ttl: "5m" };

const history: HistoryMessage[] = [
  user("go"),
  {
    role: "assistant",
    content: [
      {
        type: "tool_call",
        id: "c1",
        provider_item_id: null,
        name: "read",
        input: {},
        raw_input: null,
      },
    ],
    model: { model: "custom.test/m", variant: null },
  },
  {
    role: "tool",
    results: [{ callId: "c1", name: "read", output: "x", isError: false, details: null }],
  },
];

const sent = async (adaptor: string, options = {}, changes = {}) => {
  server.enqueue({ text: "ok" });
  const provider = customProvider({ adaptor, endpoint: server.baseUrl, ...changes });
  await collect(await bind(provider, options), request({ history }));
  return server.requests.at(-1)?.body;
};

describe("markers", () => {
  test.for(["anthropic", "anthropic-compatible"])(
    "[C-170] [C-171] %s: on the last tool, the system text and the last turn that is no tool result",
    async (adaptor) => {
      const body = await sent(adaptor);
      expect(pick(body, "tools", -1, "cache_control")).toEqual(HOUR);
      expect(pick(body, "system", -1, "cache_control")).toEqual(HOUR);
      expect(pick(body, "messages", 1, "content", -1, "cache_control")).toEqual(MINUTES);
      expect(JSON.stringify(body).match(/cache_control/g)).toHaveLength(3);
    },
  );

  test("the marker moves on and leaves nothing behind", async () => {
    server.enqueue({ text: "ok" }, { text: "ok" });
    const bound = await bind(customProvider({ adaptor: "anthropic", endpoint: server.baseUrl }));
    await collect(bound, request({ history }));
    await collect(bound, request({ history: [...history, user("next")] }));
    const messages = pick(server.requests[1]?.body, "messages");
    expect(JSON.stringify(messages).match(/cache_control/g)).toHaveLength(1);
    expect(pick(messages, -1, "content", -1)).toMatchObject({
      text: "next",
      cache_control: MINUTES,
    });
  });

  test.for(["openai-compatible", "openai-chat", "openai-responses"])(
    "%s carries none",
    async (adaptor) => {
      expect(JSON.stringify(await sent(adaptor))).not.toMatch(/cache_control|cacheControl/);
    },
  );

  test("tools that may not be called carry none", async () => {
    const model = customModel({ defaults: { toolChoice: "none" } });
    const body = await sent("anthropic", {}, { model });
    expect(JSON.stringify(pick(body, "tools") ?? [])).not.toContain("cache_control");
  });

  test("a policy that is off places none", async () => {
    const promptCaching = {
      enabled: false,
      systemTtl: "one_hour",
      toolsTtl: "one_hour",
      rollingTtl: "five_minutes",
    } as const;
    expect(JSON.stringify(await sent("anthropic", { promptCaching }))).not.toContain(
      "cache_control",
    );
  });
});
