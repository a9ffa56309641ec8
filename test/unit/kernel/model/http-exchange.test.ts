import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type ModelServer, startModelServer } from "../../../support/model-server.ts";
import { bind, collect, customProvider, failureOf, request } from "./provider-fixture.ts";

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.close());

const adaptors = ["openai-compatible", "openai-chat", "openai-responses", "anthropic"] as const;
const text = {
  "openai-compatible": [{ choices: [{ index: 0, delta: { content: "hel" } }] }],
  "openai-chat": [{ choices: [{ index: 0, delta: { content: "hel" } }] }],
  "openai-responses": [
    { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "m" } },
    { type: "response.output_text.delta", item_id: "m", delta: "hel" },
  ],
  anthropic: [
    {
      type: "message_start",
      message: { id: "m", model: "x", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hel" } },
  ],
};

describe("timeouts", () => {
  test.for(adaptors)("%s: silence after text", async (adaptor) => {
    server.enqueue({ events: text[adaptor], end: "hang" });
    const bound = await bind(customProvider({ adaptor, endpoint: server.baseUrl }), {
      timeouts: { headersMs: 10_000, idleMs: 50 },
    });
    expect(await failureOf(bound)).toMatchObject({
      kind: "timeout",
      stage: "stream_read",
      retryable: true,
      message: "the response was silent for 50 ms",
    });
  });

  test.for(adaptors)("%s: no headers", async (adaptor) => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const endpoint = `http://127.0.0.1:${port}/v1`;
    const bound = await bind(customProvider({ adaptor, endpoint }), {
      timeouts: { headersMs: 30, idleMs: 10_000 },
    });
    expect(await failureOf(bound)).toMatchObject({
      kind: "timeout",
      stage: "response_headers",
      http_status: null,
    });
  });
});

test.for(adaptors)("%s: an error that never ends is cut off and reported", async (adaptor) => {
  let closed: () => void = () => undefined;
  const gaveUp = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const endless = createServer((_, response) => {
    response.writeHead(400, { "content-type": "text/plain" });
    const send = () => {
      if (!response.destroyed) response.write("no\n\n".repeat(4096), send);
    };
    response.once("close", closed);
    send();
  });
  await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    endless.closeAllConnections();
    endless.close();
  });
  const { port } = endless.address() as AddressInfo;
  const bound = await bind(customProvider({ adaptor, endpoint: `http://127.0.0.1:${port}/v1` }));
  const failure = await failureOf(bound);
  expect(failure).toMatchObject({ http_status: 400, kind: "invalid_request" });
  expect(failure.bytes_received).toBeLessThan(1024 * 1024);
  await gaveUp;
});

describe("cancellation", () => {
  test.for(adaptors)("%s: in the middle of a response", async (adaptor) => {
    server.enqueue({ events: text[adaptor], end: "hang" });
    const bound = await bind(customProvider({ adaptor, endpoint: server.baseUrl }));
    const controller = new AbortController();
    const seen: string[] = [];
    const run = (async () => {
      for await (const part of bound.stream(request(), controller.signal)) {
        seen.push(part.type);
        controller.abort();
      }
    })();
    await expect(run).rejects.toMatchObject({ summary: { kind: "abort", retryable: false } });
    expect(seen).toEqual(["text_delta"]);
  });

  test("before the request nothing is sent", async () => {
    const bound = await bind(customProvider({ endpoint: server.baseUrl }));
    expect(await failureOf(bound, AbortSignal.abort())).toMatchObject({ kind: "abort" });
    expect(server.requests).toHaveLength(0);
  });

  test("a reader that stops early closes the connection", async () => {
    server.enqueue({ events: text["openai-chat"], end: "hang" });
    const bound = await bind(customProvider({ adaptor: "openai-chat", endpoint: server.baseUrl }));
    for await (const part of bound.stream(request(), new AbortController().signal)) {
      expect(part.type).toBe("text_delta");
      break;
    }
    await server.close();
  });

  test("the caller's signal has no listener left after a response", async () => {
    server.enqueue({ text: "ok" });
    const bound = await bind(customProvider({ endpoint: server.baseUrl }));
    const { signal } = new AbortController();
    const counts = { add: 0, remove: 0 };
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      counts.add += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      counts.remove += 1;
      remove(...args);
    };
    await collect(bound, request(), signal);
    expect(counts.add).toBeGreaterThan(0);
    expect(counts.remove).toBe(counts.add);
  });
});
