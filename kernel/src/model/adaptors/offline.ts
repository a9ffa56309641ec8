import type {
  AssistantPart,
  JsonObject,
  ModelSelection,
  ToolCallPart,
  Usage,
} from "@cookie-agent/sdk/protocol";
import { textOnly } from "../../config/media-target.ts";
import { sha256Hex } from "../../support/digest.ts";
import { isJsonObject } from "../../support/json-object.ts";
import { cutUtf8 } from "../../support/safe-text.ts";
import type {
  BoundModel,
  HistoryMessage,
  ModelRequest,
  ModelStreamPart,
  ToolResultMessage,
} from "../bound-model.ts";
import { CallIds } from "../call-ids.ts";
import { modelError } from "../model-error.ts";

export const OFFLINE_MODEL = "offline/script";
const OFFLINE_SELECTION: ModelSelection = { model: OFFLINE_MODEL, variant: null };

const NOTE =
  "This is the offline model: it plays your message as a script and knows nothing else. " +
  "Lines `call <tool> <json>` call tools, `say <text>` answers, `---` ends a turn. " +
  "To talk to a real model, add a provider to config.toml and select one of its models.";
const WITHOUT_TOOLS = "Offline session";
const MAX_SUMMARY_BYTES = 120;
const NO_USAGE: Usage = {
  input_tokens: 0,
  input_tokens_no_cache: 0,
  input_tokens_cache_read: 0,
  input_tokens_cache_write: 0,
  output_tokens: 0,
  output_tokens_text: 0,
  output_tokens_reasoning: 0,
};

/** The built-in model that plays the last user message as a script; no network, no key, no cost (C 5.14). */
export function bindOfflineModel(): BoundModel {
  return {
    selection: OFFLINE_SELECTION,
    resolved: {
      selection: OFFLINE_SELECTION,
      adapter_id: "offline",
      wire_model_id: "script",
      endpoint_identity: "offline",
      fingerprint: sha256Hex("cookie-agent/offline-model/v1"),
    },
    contextTokens: null,
    outputTokens: null,
    toolCalling: true,
    media: textOnly(OFFLINE_MODEL, "offline"),
    takes: { temperature: false, topP: false },
    headers: null,
    samplingFor: () => ({}),
    price: () => 0n,
    stream: playTurn,
  };
}

/** What a script asks of one turn. */
type Step =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "call"; readonly tool: string; readonly input: JsonObject };

async function* playTurn(
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelStreamPart> {
  const content: AssistantPart[] = [];
  const ids = new CallIds(request.usedCallIds ?? new Set());
  const steps = stepsOfTurn(request);
  for (const [index, step] of steps.entries()) {
    // Real streams hand control back between parts, and a cancellation can arrive there.
    await Promise.resolve();
    if (signal.aborted) throw cancelled();
    if (step.kind === "say") {
      const text = index < steps.length - 1 ? `${step.text}\n` : step.text;
      content.push({ type: "text", text });
      yield { type: "text_delta", text };
      continue;
    }
    const part: ToolCallPart = {
      type: "tool_call",
      id: ids.assign("call_1"),
      provider_item_id: null,
      name: step.tool,
      input: step.input,
      raw_input: null,
    };
    content.push(part);
    yield { type: "tool_named", callId: part.id, name: part.name };
    yield { type: "tool_arguments", part };
  }
  const calls = content.some((part) => part.type === "tool_call");
  const turn = { content, finish_reason: calls ? "tool_calls" : "stop", usage: NO_USAGE } as const;
  yield { type: "finish", turn: { ...turn, content }, warnings: [] };
}

function stepsOfTurn({ history, tools, isAside }: ModelRequest): Step[] {
  if (tools.length === 0 || isAside === true) return [{ kind: "say", text: WITHOUT_TOOLS }];
  const start = history.findLastIndex((message) => message.role === "user");
  const input = history[start];
  if (input?.role !== "user") return [{ kind: "say", text: NOTE }];
  const script = parseScript(input.text);
  if (script === null) return [{ kind: "say", text: NOTE }];
  const since = history.slice(start + 1);
  const turn = since.filter((message) => message.role === "assistant").length;
  return script[turn] ?? [{ kind: "say", text: accountOf(since) }];
}

/** Turns of steps; null when no line of the text is a command. */
function parseScript(text: string): Step[][] | null {
  let commands = false;
  const turns: Step[][] = [[]];
  for (const line of text.split(/\r?\n/).map((each) => each.trim())) {
    if (line === "") continue;
    if (line === "---") turns.push([]);
    else {
      const step = parseLine(line);
      commands ||= step.command;
      turns.at(-1)?.push(step.step);
    }
  }
  return commands ? turns.filter((turn) => turn.length > 0) : null;
}

function parseLine(line: string): { command: boolean; step: Step } {
  const say = /^say(?:\s+(.*))?$/s.exec(line);
  if (say !== null) return { command: true, step: { kind: "say", text: say[1] ?? "" } };
  const call = /^call(?:\s+(\S+)(?:\s+(.*))?)?$/s.exec(line);
  if (call === null) {
    return { command: false, step: { kind: "say", text: `(not a script line: ${line})` } };
  }
  return { command: true, step: parseCall(call[1], call[2]) };
}

function parseCall(tool: string | undefined, json: string | undefined): Step {
  if (tool === undefined) {
    return { kind: "say", text: "(a call needs a tool: call <tool> <json>)" };
  }
  let input: unknown;
  try {
    input = json === undefined ? {} : JSON.parse(json);
  } catch {
    input = undefined;
  }
  if (!isJsonObject(input)) {
    return { kind: "say", text: `(the arguments of ${tool} are not a JSON object: ${json})` };
  }
  return { kind: "call", tool: cutUtf8(tool, 512), input };
}

/** One line for every result since the input, in order. */
function accountOf(since: readonly HistoryMessage[]): string {
  const results = since.flatMap((message) => (message.role === "tool" ? message.results : []));
  if (results.length === 0) return "Script done; no tool was called.";
  return ["Script done:", ...results.map(describeResult)].join("\n");
}

function describeResult(result: ToolResultMessage): string {
  // Far more than the summary can hold, far less than a result can be.
  const line = result.output.slice(0, 4096).replace(/\s+/g, " ").trim();
  return `- ${result.name}: ${result.isError ? "failed" : "ok"}: ${cutUtf8(line, MAX_SUMMARY_BYTES)}`;
}

function cancelled(): Error {
  return modelError({ kind: "abort", stage: "stream_read", message: "the request was cancelled" });
}
