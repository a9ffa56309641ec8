import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Wire = "openai-chat" | "openai-responses" | "anthropic";

export interface RecordedRequest {
  readonly wire: Wire;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
  readonly receivedAtMs: number;
}

export interface ScriptedCall {
  /** `call_<n>`, counted over the server, when absent. */
  readonly id?: string;
  readonly name: string;
  /** An object, or the exact text to stream. */
  readonly arguments?: object | string;
}

/** A model response, sent in the form of the wire that asked. */
export interface ScriptedTurn {
  readonly reasoning?: string;
  /** Several strings are several deltas. */
  readonly text?: string | readonly string[];
  readonly calls?: readonly ScriptedCall[];
  /** `length` says so where the wire says it; by default what the content implies. */
  readonly finish?: "stop" | "tool_calls" | "length";
  readonly usage?: {
    readonly input?: number;
    readonly output?: number;
    readonly cacheRead?: number;
    readonly cacheWrite?: number;
    readonly reasoning?: number;
  };
  /** Waits before the last event: a promise, or never. */
  readonly until?: Promise<unknown>;
}

/** Exactly this response. */
export interface RawAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Objects become `data:` events (with `event:` from their `type`); strings are sent as they are. */
  readonly events?: readonly (object | string)[];
  readonly body?: string | object;
  /** `cut` breaks the connection after the events, `hang` leaves it open. */
  readonly end?: "close" | "cut" | "hang";
}

export type Answer = ScriptedTurn | RawAnswer | ((request: RecordedRequest) => Answer);

/** What the engine asks beside the conversation; told by the built-in prompts of its internal agents. */
export type Aside = "approval" | "context_compaction" | "session_title";

export interface ModelServer {
  /** The base address of all three wires, ending in `/v1`. */
  readonly baseUrl: string;
  /** Those of conversations. */
  readonly requests: readonly RecordedRequest[];
  /** Those of internal agents. */
  readonly asides: readonly (RecordedRequest & { readonly aside: Aside })[];
  /** Answers are used up in order; without one the server answers 500. */
  enqueue(...answers: Answer[]): void;
  /** Answers every request for which nothing is queued. */
  otherwise(answer: Answer): void;
  /** Answers every request of an internal agent; until then its approvals ask a person and its titles fail. */
  answerAsides(aside: Aside, answer: Answer): void;
  close(): Promise<void>;
}

/** A model provider on loopback that speaks three wires. */
export async function startModelServer(...answers: Answer[]): Promise<ModelServer> {
  const queue: Answer[] = [...answers];
  const requests: RecordedRequest[] = [];
  const asides: ModelServer["asides"][number][] = [];
  const asideAnswers = new Map<Aside, Answer>([
    ["approval", { text: '{"decision":"ask"}' }],
    ["session_title", { status: 400, body: { error: { message: "no title here" } } }],
  ]);
  let fallback: Answer = {
    status: 500,
    body: { error: { message: "no scripted answer is left" } },
  };
  let calls = 0;
  const nextId = () => `call_${++calls}`;

  const server = createServer((incoming, response) => {
    void readRequest(incoming).then(async (request) => {
      if (request === undefined) return;
      const aside = asideOf(request);
      const prepared = aside && asideAnswers.get(aside);
      if (aside === undefined) requests.push(request);
      else asides.push({ ...request, aside });
      let answer = prepared ?? queue.shift() ?? fallback;
      while (typeof answer === "function") answer = answer(request);
      await send(response, request, answer, nextId);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    asides,
    answerAsides: (aside, answer) => void asideAnswers.set(aside, answer),
    enqueue: (...more) => void queue.push(...more),
    otherwise: (answer) => {
      fallback = answer;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const ASIDE_MARKS: readonly (readonly [string, Aside])[] = [
  ["You decide whether one tool call of a coding agent", "approval"],
  ["You name conversations between a user and", "session_title"],
  ["Write the notes from which you, without any memory", "context_compaction"],
];

/** The first prompts stand where a request begins, that of a summary is its last message. */
function asideOf({ body }: RecordedRequest): Aside | undefined {
  const conversation = pick(body, "messages") ?? pick(body, "input");
  const system = pick(body, "system") ?? pick(body, "instructions") ?? pick(conversation, 0);
  const start = JSON.stringify(system ?? null);
  const end = JSON.stringify(pick(conversation, -1) ?? null);
  return ASIDE_MARKS.find(([mark, aside]) =>
    (aside === "context_compaction" ? end : start).includes(mark),
  )?.[1];
}

/** What stands at a path in a body; a negative index counts from the end. */
export function pick(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((current, step) => {
    if (typeof current !== "object" || current === null) return undefined;
    if (Array.isArray(current)) return typeof step === "number" ? current.at(step) : undefined;
    return Object.entries(current).find(([name]) => name === step)?.[1];
  }, value);
}

/** What the model takes beside text: by kind, its MIME types and its limits. */
export type ScriptedMedia = Readonly<
  Record<
    string,
    { readonly mime: readonly string[]; readonly bytes?: number; readonly count?: number }
  >
>;

/** A `[providers."custom.<name>"]` section with one model that can do everything, for config.toml. */
export function providerToml(
  server: Pick<ModelServer, "baseUrl">,
  options: {
    name?: string;
    wire?: Wire;
    model?: string;
    apiKey?: string;
    media?: ScriptedMedia;
    /** 200,000 when absent. */
    contextTokens?: number;
  } = {},
): string {
  const { name = "test", wire = "openai-chat", model = "scripted", apiKey = "test-key" } = options;
  const media = options.media ?? {};
  const adaptor = wire === "openai-chat" ? "openai-compatible" : wire;
  const method = wire === "anthropic" ? "anthropic-api-key-v1" : "bearer-api-key-v1";
  return `[providers."custom.${name}"]
source = "custom"
endpoint = "${server.baseUrl}"
adaptor = "${adaptor}"
auth = { method = "${method}", values = { api_key = "${apiKey}" } }

[providers."custom.${name}".models."${model}"]
display_name = "Scripted"

[providers."custom.${name}".models."${model}".capabilities]
input = ${JSON.stringify(["text", ...Object.keys(media)])}
output = ["text"]
context_tokens = ${options.contextTokens ?? 200_000}
output_tokens = ${Math.min(32_000, options.contextTokens ?? 32_000)}
tool_calling = true
parallel_tool_calls = true
structured_output = false
reasoning = true
temperature = true
top_p = true
seed = false
${Object.entries(media)
  .map(
    ([kind, { mime, bytes = 20 * 1024 * 1024, count = 20 }]) => `
[providers."custom.${name}".models."${model}".capabilities.media.${kind}]
mime_types = ${JSON.stringify(mime)}
max_bytes = ${bytes}
max_count = ${count}
`,
  )
  .join("")}`;
}

/** Undefined when the client was cancelled or killed before it had sent everything. */
async function readRequest(incoming: IncomingMessage): Promise<RecordedRequest | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
  } catch (error) {
    if (incoming.complete) throw error;
    return undefined;
  }
  const path = incoming.url ?? "";
  return {
    wire: path.endsWith("/messages")
      ? "anthropic"
      : path.endsWith("/responses")
        ? "openai-responses"
        : "openai-chat",
    path,
    headers: incoming.headers,
    body: JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown,
    receivedAtMs: Date.now(),
  };
}

async function send(
  response: ServerResponse,
  request: RecordedRequest,
  answer: ScriptedTurn | RawAnswer,
  nextId: () => string,
): Promise<void> {
  if (isRaw(answer)) return sendRaw(response, answer);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const events = WIRES[request.wire](answer, nextId, String(pick(request.body, "model")));
  const last = events.pop();
  for (const event of events) response.write(encode(event));
  await answer.until;
  if (last !== undefined) response.write(encode(last));
  response.end();
}

function sendRaw(response: ServerResponse, answer: RawAnswer): void {
  const type = answer.events === undefined ? "application/json" : "text/event-stream";
  response.writeHead(answer.status ?? 200, { "content-type": type, ...answer.headers });
  response.flushHeaders();
  const body = answer.body ?? "";
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const sent = text + (answer.events ?? []).map(encode).join("");
  if (answer.end === "cut") response.write(sent, () => response.destroy());
  else if (answer.end === "hang") response.write(sent);
  else response.end(sent);
}

function isRaw(answer: ScriptedTurn | RawAnswer): answer is RawAnswer {
  return "status" in answer || "events" in answer || "body" in answer || "end" in answer;
}

function encode(event: object | string): string {
  if (typeof event === "string") return event;
  const name = "type" in event ? `event: ${String(event.type)}\n` : "";
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

function deltasOf(turn: ScriptedTurn): readonly string[] {
  return turn.text === undefined ? [] : typeof turn.text === "string" ? [turn.text] : turn.text;
}

function argumentsOf(call: ScriptedCall): string {
  return typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {});
}

type WireEncoder = (turn: ScriptedTurn, nextId: () => string, model: string) => (object | string)[];

const encodeChat: WireEncoder = (turn, nextId, model) => {
  const chunk = (delta: object, finish: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const { input = 10, output = 5, cacheRead, reasoning } = turn.usage ?? {};
  return [
    chunk({ role: "assistant", content: "" }),
    ...(turn.reasoning === undefined ? [] : [chunk({ reasoning_content: turn.reasoning })]),
    ...deltasOf(turn).map((content) => chunk({ content })),
    ...(turn.calls ?? []).flatMap((call, index) => [
      chunk({
        tool_calls: [
          {
            index,
            id: call.id ?? nextId(),
            type: "function",
            function: { name: call.name, arguments: "" },
          },
        ],
      }),
      chunk({ tool_calls: [{ index, function: { arguments: argumentsOf(call) } }] }),
    ]),
    chunk({}, turn.finish ?? (turn.calls?.length ? "tool_calls" : "stop")),
    {
      ...chunk({}),
      choices: [],
      usage: {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        ...(cacheRead !== undefined && { prompt_tokens_details: { cached_tokens: cacheRead } }),
        ...(reasoning !== undefined && {
          completion_tokens_details: { reasoning_tokens: reasoning },
        }),
      },
    },
    "data: [DONE]\n\n",
  ];
};

const encodeResponses: WireEncoder = (turn, nextId, model) => {
  const { input = 10, output = 5, cacheRead = 0, reasoning = 0 } = turn.usage ?? {};
  const base = { id: "resp_1", object: "response", created_at: 1, model };
  const events: object[] = [
    { type: "response.created", response: { ...base, status: "in_progress" } },
  ];
  let index = 0;
  if (turn.reasoning !== undefined) {
    const item = { type: "reasoning", id: "rs_1", encrypted_content: "sealed" };
    events.push(
      { type: "response.output_item.added", output_index: index, item: { ...item, summary: [] } },
      {
        type: "response.reasoning_summary_text.delta",
        item_id: "rs_1",
        summary_index: 0,
        delta: turn.reasoning,
      },
      {
        type: "response.output_item.done",
        output_index: index++,
        item: { ...item, summary: [{ type: "summary_text", text: turn.reasoning }] },
      },
    );
  }
  const deltas = deltasOf(turn);
  if (deltas.length > 0) {
    const item = { type: "message", id: "msg_1", role: "assistant" };
    events.push(
      { type: "response.output_item.added", output_index: index, item: { ...item, content: [] } },
      ...deltas.map((delta) => ({ type: "response.output_text.delta", item_id: "msg_1", delta })),
      {
        type: "response.output_item.done",
        output_index: index++,
        item: { ...item, status: "completed", content: [] },
      },
    );
  }
  for (const call of turn.calls ?? []) {
    const text = argumentsOf(call);
    const callId = call.id ?? nextId();
    const item = { type: "function_call", id: `fc_${callId}`, call_id: callId, name: call.name };
    events.push(
      { type: "response.output_item.added", output_index: index, item: { ...item, arguments: "" } },
      {
        type: "response.function_call_arguments.delta",
        item_id: item.id,
        output_index: index,
        delta: text,
      },
      {
        type: "response.output_item.done",
        output_index: index++,
        item: { ...item, arguments: text, status: "completed" },
      },
    );
  }
  const cut = turn.finish === "length";
  events.push({
    type: cut ? "response.incomplete" : "response.completed",
    response: {
      ...base,
      status: cut ? "incomplete" : "completed",
      ...(cut && { incomplete_details: { reason: "max_output_tokens" } }),
      output: [],
      usage: {
        input_tokens: input,
        input_tokens_details: { cached_tokens: cacheRead },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: reasoning },
        total_tokens: input + output,
      },
    },
  });
  return events;
};

const encodeAnthropic: WireEncoder = (turn, nextId, model) => {
  const { input = 10, output = 5, cacheRead, cacheWrite } = turn.usage ?? {};
  const events: object[] = [
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        usage: {
          input_tokens: input,
          output_tokens: 1,
          ...(cacheRead !== undefined && { cache_read_input_tokens: cacheRead }),
          ...(cacheWrite !== undefined && { cache_creation_input_tokens: cacheWrite }),
        },
      },
    },
  ];
  let index = 0;
  const block = (start: object, deltas: readonly object[]) => {
    events.push(
      { type: "content_block_start", index, content_block: start },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    );
    index += 1;
  };
  if (turn.reasoning !== undefined) {
    block({ type: "thinking", thinking: "" }, [
      { type: "thinking_delta", thinking: turn.reasoning },
      { type: "signature_delta", signature: "signed" },
    ]);
  }
  const deltas = deltasOf(turn);
  if (deltas.length > 0) {
    block(
      { type: "text", text: "" },
      deltas.map((text) => ({ type: "text_delta", text })),
    );
  }
  for (const call of turn.calls ?? []) {
    block({ type: "tool_use", id: call.id ?? nextId(), name: call.name, input: {} }, [
      { type: "input_json_delta", partial_json: argumentsOf(call) },
    ]);
  }
  const reasons = { stop: "end_turn", tool_calls: "tool_use", length: "max_tokens" };
  const finish = turn.finish ?? (turn.calls?.length ? "tool_calls" : "stop");
  events.push(
    {
      type: "message_delta",
      delta: { stop_reason: reasons[finish], stop_sequence: null },
      usage: { output_tokens: output },
    },
    { type: "message_stop" },
  );
  return events;
};

const WIRES: Record<Wire, WireEncoder> = {
  "openai-chat": encodeChat,
  "openai-responses": encodeResponses,
  anthropic: encodeAnthropic,
};
