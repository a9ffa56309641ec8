import type {
  AssistantPart,
  HookMessage,
  HookPart,
  ModelSelection,
} from "@cookie-agent/sdk/protocol";
import type { HistoryMessage, ModelRequest, ToolResultMessage } from "../model/bound-model.ts";

type Conversation = Pick<ModelRequest, "system" | "history">;

/** A request's conversation as hooks see it. */
export function toHookMessages({ system, history }: Conversation): HookMessage[] {
  const messages = history.map(toHookMessage);
  return system === "" ? messages : [{ role: "system", content: system }, ...messages];
}

/** What a model said, without the provider's own data. */
export function toHookParts(content: readonly AssistantPart[]): HookPart[] {
  return content.map((part) => {
    if (part.type !== "tool_call") return { type: part.type, text: part.text };
    const { type, id, name, input, raw_input } = part;
    return { type, id, name, input, ...(raw_input !== null && { raw_input }) };
  });
}

/**
 * The conversation that a hook wants, or what is wrong with it. A message that it left as it was stays the same object,
 * with everything that hooks do not see.
 */
export function fromHookMessages(
  messages: readonly HookMessage[],
  before: Conversation,
  model: { readonly selection: ModelSelection; readonly toolCalling: boolean },
): Conversation | { readonly problem: string } {
  const problem = problemOf(messages, model.toolCalling);
  if (problem !== undefined) return { problem };
  const known = new Known(before.history, toHookMessage);
  const results = new Map(
    before.history.flatMap((message) =>
      message.role === "tool" ? message.results.map((each) => [each.callId, each] as const) : [],
    ),
  );
  const [first] = messages;
  const system = first?.role === "system" ? first.content : "";
  const history = messages.flatMap((message) => {
    if (message.role === "system") return [];
    return [known.take(message) ?? fromHookMessage(message, model.selection, results)];
  });
  return { system, history };
}

/** The parts that a hook wants in a turn; what it left as it was keeps the provider's own data. */
export function fromHookParts(
  content: readonly HookPart[],
  before: readonly AssistantPart[],
): AssistantPart[] {
  const known = new Known(before, (part) => toHookParts([part])[0]);
  const itemIds = new Map(
    before.flatMap((part) =>
      part.type === "tool_call" ? [[part.id, part.provider_item_id] as const] : [],
    ),
  );
  return content.map((part) => {
    const same = known.take(part);
    if (same !== undefined) return same;
    return part.type === "tool_call"
      ? { ...fromHookPart(part), provider_item_id: itemIds.get(part.id) ?? null }
      : part;
  });
}

/** Originals by what hooks see of them; equal ones are given out in order. */
class Known<T> {
  readonly #byShown = new Map<string, T[]>();

  constructor(originals: readonly T[], show: (original: T) => unknown) {
    for (const original of originals) {
      const shown = JSON.stringify(show(original));
      const same = this.#byShown.get(shown);
      if (same === undefined) this.#byShown.set(shown, [original]);
      else same.push(original);
    }
  }

  take(shown: unknown): T | undefined {
    return this.#byShown.get(JSON.stringify(shown))?.shift();
  }
}

function toHookMessage(message: HistoryMessage): HookMessage {
  switch (message.role) {
    case "user":
      return { role: "user", content: message.text };
    case "assistant":
      return { role: "assistant", content: toHookParts(message.content) };
    case "tool":
      return {
        role: "tool",
        content: message.results.map(({ callId, name, output, isError, details }) => ({
          call_id: callId,
          name,
          output: details === null ? output : `${output}\n${JSON.stringify(details)}`,
          is_error: isError,
        })),
      };
  }
}

function fromHookMessage(
  message: Exclude<HookMessage, { role: "system" }>,
  model: ModelSelection,
  results: ReadonlyMap<string, ToolResultMessage>,
): HistoryMessage {
  switch (message.role) {
    case "user":
      return { role: "user", text: message.content };
    case "assistant":
      return { role: "assistant", content: message.content.map(fromHookPart), model };
    case "tool":
      return {
        role: "tool",
        results: message.content.map(({ call_id, name, output, is_error }) => ({
          ...mediaOf(results.get(call_id)),
          callId: call_id,
          name,
          output,
          isError: is_error,
          details: null,
        })),
      };
  }
}

/** Hooks see texts, so what else a result holds is not theirs to take away. */
function mediaOf(result: ToolResultMessage | undefined) {
  const { attachments, additional } = result ?? {};
  return { ...(attachments && { attachments }), ...(additional && { additional }) };
}

function fromHookPart(part: HookPart): AssistantPart {
  if (part.type !== "tool_call") return part;
  const { type, id, name, input, raw_input = null } = part;
  return {
    type,
    id,
    name,
    input: raw_input === null ? input : null,
    raw_input,
    provider_item_id: null,
  };
}

/** Why no wire would take these messages. */
function problemOf(messages: readonly HookMessage[], toolCalling: boolean): string | undefined {
  const used = new Set<string>();
  let open: ReadonlySet<string> = new Set();
  for (const [index, message] of messages.entries()) {
    if (message.role === "system" && index > 0) return "a system message must be the first one";
    if ((message.role === "system" || message.role === "user") && message.content.trim() === "") {
      return `a ${message.role} message must not be blank`;
    }
    if (message.role === "tool") {
      const answered = message.content.map(({ call_id }) => call_id);
      if (new Set(answered).size !== answered.length || answered.some((id) => !open.has(id))) {
        return "a tool message must answer calls of the message before it, each once";
      }
    }
    const calls = message.role === "assistant" ? callIds(message.content) : [];
    if (calls.length > 0 && !toolCalling) return "the model takes no tool calls";
    if (calls.some((id) => used.has(id)) || new Set(calls).size !== calls.length) {
      return "a call id is used twice";
    }
    for (const id of calls) used.add(id);
    open = new Set(calls);
  }
  const last = messages.at(-1)?.role;
  return last === "user" || last === "tool"
    ? undefined
    : "the last message must be one that the model can answer";
}

export function callIds(content: readonly HookPart[]): string[] {
  return content.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
}
