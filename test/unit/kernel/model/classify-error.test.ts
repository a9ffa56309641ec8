import { type AddressInfo, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { parseRetryAfter } from "../../../../kernel/src/model/classify-error.ts";
import { type ModelServer, startModelServer } from "../../../support/model-server.ts";
import {
  ADAPTORS,
  type Adaptor,
  bind,
  customProvider,
  failureOf,
  keyAuth,
} from "./provider-fixture.ts";

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.close());

const bindTo = (adaptor: Adaptor, changes = {}) =>
  bind(customProvider({ adaptor, endpoint: server.baseUrl, ...changes }));

/** The error body as the vendor of the adaptor writes it. */
const vendorError = (
  adaptor: Adaptor,
  type: string,
  message: string,
  code: string | null = null,
) =>
  adaptor.startsWith("anthropic")
    ? { type: "error", error: { type: code ?? type, message } }
    : { error: { message, type, code, param: null } };

describe("[C-184] kinds by status", () => {
  const STATUSES = [
    [400, "invalid_request", false],
    [401, "auth", false],
    [402, "quota", false],
    [403, "permission_denied", false],
    [404, "model_not_found", false],
    [408, "timeout", true],
    [413, "context_length", false],
    [422, "invalid_request", false],
    [429, "rate_limited", true],
    [500, "provider", true],
    [502, "provider", true],
    [503, "overload", true],
    [529, "overload", true],
  ] as const;

  test.for(ADAPTORS.flatMap((adaptor) => STATUSES.map((each) => [adaptor, ...each] as const)))(
    "%s: HTTP %i is %s, retryable %s",
    async ([adaptor, status, kind, retryable]) => {
      server.enqueue({ status, body: vendorError(adaptor, "some_error", "no") });
      expect(await failureOf(await bindTo(adaptor))).toMatchObject({
        kind,
        retryable,
        http_status: status,
        stage: "response_headers",
        message: `custom.test answered HTTP ${status}: no`,
      });
    },
  );

  test.for([
    ["openai-chat", 429, "insufficient_quota", "quota"],
    ["openai-responses", 400, "context_length_exceeded", "context_length"],
    ["openai-compatible", 400, "content_filter", "content_filter"],
    ["anthropic", 400, "invalid_request_error", "invalid_request"],
  ] as const)("%s: HTTP %i with the code %s is %s", async ([adaptor, status, code, kind]) => {
    server.enqueue({ status, body: vendorError(adaptor, "t", "no", code) });
    expect(await failureOf(await bindTo(adaptor))).toMatchObject({ kind, vendor_code: code });
  });

  test.for([
    "prompt is too long: 210000 tokens > 200000 maximum",
    "This model's maximum context length is 8192 tokens",
    "input length and `max_tokens` exceed context limit: 1 + 2 > 3",
  ])("the words %o are a context overflow", async (message) => {
    server.enqueue({
      status: 400,
      body: vendorError("anthropic", "invalid_request_error", message),
    });
    expect(await failureOf(await bindTo("anthropic"))).toMatchObject({ kind: "context_length" });
  });

  test("a page instead of an error body still has its status", async () => {
    server.enqueue({ status: 502, headers: { "content-type": "text/html" }, body: "<h1>Bad</h1>" });
    expect(await failureOf(await bindTo("openai-chat"))).toMatchObject({
      kind: "provider",
      http_status: 502,
      message: "custom.test answered HTTP 502: Bad Gateway",
    });
  });

  test("a redirect is not followed, for it would carry the key along", async () => {
    server.enqueue({ status: 307, headers: { location: `${server.baseUrl}/elsewhere` } });
    expect(await failureOf(await bindTo("anthropic"))).toMatchObject({ kind: "invalid_response" });
    expect(server.requests).toHaveLength(1);
  });
});

describe("errors inside a 200", () => {
  test.for([
    ["anthropic", { type: "error", error: { type: "overloaded_error", message: "x" } }, "overload"],
    ["anthropic", { type: "error", error: { type: "api_error", message: "x" } }, "provider"],
    ["openai-chat", { error: { message: "x", type: "rate_limit_exceeded" } }, "rate_limited"],
    ["openai-compatible", { error: { message: "x", code: 502 } }, "provider"],
    ["openai-compatible", { error: { message: "x", code: "insufficient_quota" } }, "quota"],
    [
      "openai-responses",
      { type: "error", code: "server_error", message: "x", param: null, sequence_number: 1 },
      "provider",
    ],
  ] as const)("%s: the event %o", async ([adaptor, event, kind]) => {
    server.enqueue({ events: [event] });
    expect(await failureOf(await bindTo(adaptor))).toMatchObject({
      kind,
      http_status: 200,
      stage: "stream_event",
    });
  });

  test("an error after text", async () => {
    server.enqueue({
      events: [
        { choices: [{ index: 0, delta: { content: "hel" } }] },
        { error: { message: "x", type: "overloaded" } },
      ],
    });
    expect(await failureOf(await bindTo("openai-compatible"))).toMatchObject({ kind: "overload" });
  });

  test("a JSON object where events were asked for", async () => {
    server.enqueue({ status: 200, body: { error: { message: "x", code: "model_not_found" } } });
    expect(await failureOf(await bindTo("openai-chat"))).toMatchObject({ kind: "model_not_found" });
  });

  test.for(ADAPTORS)(
    "%s: a page is an invalid response and no reason to retry",
    async (adaptor) => {
      server.enqueue({ headers: { "content-type": "text/html" }, body: "<h1>Sign in</h1>" });
      expect(await failureOf(await bindTo(adaptor))).toMatchObject({
        kind: "invalid_response",
        retryable: false,
        stage: "response_body",
        message: expect.stringContaining("check the endpoint") as string,
      });
    },
  );

  test.for(ADAPTORS)("%s: an event that is no JSON", async (adaptor) => {
    server.enqueue({ events: ["data: {oops\n\n"] });
    expect(await failureOf(await bindTo(adaptor))).toMatchObject({
      kind: "invalid_response",
      retryable: true,
    });
  });
});

describe("broken connections", () => {
  const started = {
    "openai-compatible": [{ choices: [{ index: 0, delta: { content: "hel" } }] }],
    "openai-chat": [{ choices: [{ index: 0, delta: { content: "hel" } }] }],
    "openai-responses": [
      { type: "response.created", response: { id: "r", created_at: 1, model: "m" } },
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "message", id: "msg_1" },
      },
      { type: "response.output_text.delta", item_id: "msg_1", delta: "hel" },
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
  const wires = Object.keys(started) as (keyof typeof started)[];

  test.for(wires)("%s: a body that ends early is an unexpected end", async (wire) => {
    server.enqueue({ events: started[wire] });
    expect(await failureOf(await bindTo(wire))).toMatchObject({
      kind: "unexpected_eof",
      retryable: true,
      stage: "stream_finalize",
      http_status: 200,
    });
  });

  test.for(wires)("%s: a cut connection is a transport failure", async (wire) => {
    server.enqueue({ events: started[wire], end: "cut" });
    const failure = await failureOf(await bindTo(wire));
    expect(failure).toMatchObject({ kind: "transport", retryable: true, stage: "stream_read" });
    expect(failure.bytes_received).toBeGreaterThan(0);
  });

  test.for(wires)("%s: an empty body is an unexpected end", async (wire) => {
    server.enqueue({ events: [] });
    expect(await failureOf(await bindTo(wire))).toMatchObject({ kind: "unexpected_eof" });
  });

  test.for(ADAPTORS)("%s: nobody listens", async (adaptor) => {
    const closed = await startModelServer();
    await closed.close();
    expect(await failureOf(await bindTo(adaptor, { endpoint: closed.baseUrl }))).toMatchObject({
      kind: "transport",
      retryable: true,
      stage: "connect",
      http_status: null,
      message: expect.stringContaining("ECONNREFUSED") as string,
    });
  });
});

describe("what is no HTTP, or breaks inside of it", () => {
  /** Answers every connection with these bytes. */
  async function serveBytes(answer: string | Buffer): Promise<string> {
    const sockets = new Set<Socket>();
    const raw = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(answer));
    });
    await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      raw.close();
    });
    return `http://127.0.0.1:${(raw.address() as AddressInfo).port}/v1`;
  }
  const head = (lines: string) =>
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${lines}\r\n\r\n`;

  test.for([
    ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n", "HPE_INVALID_CONSTANT"],
    [
      "TLS where plain HTTP is asked",
      Buffer.of(0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5),
      "HPE_INVALID_CONSTANT",
    ],
    ["endless headers", head(`x: ${"y".repeat(40_000)}`), "HPE_HEADER_OVERFLOW"],
  ] as const)("%s is a transport failure that says what to check", async ([, answer, code]) => {
    const bound = await bindTo("openai-chat", { endpoint: await serveBytes(answer) });
    expect(await failureOf(bound)).toMatchObject({
      kind: "transport",
      retryable: true,
      stage: "connect",
      message: `custom.test answers with what cannot be read as HTTP (${code}); check the endpoint`,
    });
  });

  test.for([
    [
      "a chunk without a size",
      `${head("transfer-encoding: chunked")}zz\r\n`,
      /ECONNRESET|HPE_INVALID_CHUNK_SIZE/,
    ],
    ["a compression that is none", `${head("content-encoding: gzip")}plain text`, /Z_DATA_ERROR/],
    ["another one", `${head("content-encoding: br")}plain text, not brotli`, /ERR__ERROR_/],
    [
      "a compressed body that is cut",
      Buffer.concat([
        Buffer.from(head("content-encoding: gzip")),
        gzipSync("data: x\n\n").subarray(0, 15),
      ]),
      /Z_BUF_ERROR/,
    ],
  ] as const)("%s breaks the response", async ([, answer, code]) => {
    const bound = await bindTo("openai-chat", { endpoint: await serveBytes(answer) });
    expect(await failureOf(bound)).toMatchObject({
      kind: "transport",
      retryable: true,
      stage: "stream_read",
      message: expect.stringMatching(code) as string,
    });
  });
});

describe("[C-186] what a summary says", () => {
  test("a key that the provider echoes is taken out, and controls and length are bounded", async () => {
    const echoed = `Incorrect key sk-very-secret\u0007 ${"x".repeat(9000)}`;
    server.enqueue({ status: 401, body: vendorError("openai-chat", "t", echoed) });
    const auth = keyAuth("openai-chat", "sk-very-secret");
    const { message } = await failureOf(await bindTo("openai-chat", { auth }));
    expect(message).toContain("[redacted]");
    expect(message).not.toMatch(/sk-very|\p{Cc}/u);
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4096);
  });

  test("the request id of the provider is kept", async () => {
    server.enqueue({
      status: 500,
      headers: { "request-id": "req_1" },
      body: vendorError("anthropic", "api_error", "no"),
    });
    expect(await failureOf(await bindTo("anthropic"))).toMatchObject({ request_id: "req_1" });
  });
});

describe("Retry-After (B119)", () => {
  test.for(ADAPTORS)("%s: seconds reach the summary", async (adaptor) => {
    server.enqueue({
      status: 429,
      headers: { "retry-after": "3" },
      body: vendorError(adaptor, "rate_limit_error", "slow down"),
    });
    expect(await failureOf(await bindTo(adaptor))).toMatchObject({ retry_after_ms: 3000 });
  });

  const parse = (headers: Record<string, string>) =>
    parseRetryAfter((name) => headers[name] ?? null);

  test.for([
    [{ "retry-after": "3" }, 3000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1500],
    [{ "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, 0],
    [{ "retry-after": "soon" }, null],
    [{ "retry-after": "-4" }, null],
    [{}, null],
  ] as const)("%o is %o ms", ([headers, expected]) => {
    expect(parse(headers)).toBe(expected);
  });

  test("a date is understood", () => {
    const wait = parse({ "retry-after": new Date(Date.now() + 60_000).toUTCString() });
    expect(wait).toBeGreaterThan(50_000);
    expect(wait).toBeLessThanOrEqual(60_000);
  });
});
