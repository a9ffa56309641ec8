import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type {
  AdditionalMessage,
  AssistantPart,
  JsonObject,
  ToolAttachment,
  ToolCallPart,
} from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";
import type {
  HistoryMessage,
  SuppliedMedia,
  SuppliedPart,
  ToolResultMessage,
} from "./bound-model.ts";
import { portableCallId, portableToolName } from "./call-ids.ts";

type AssistantMessage = Extract<LanguageModelV3Message, { role: "assistant" }>;
type AssistantContent = AssistantMessage["content"][number];
type SystemMessage = Extract<LanguageModelV3Message, { role: "system" }>;
type UserMessage = Extract<LanguageModelV3Message, { role: "user" }>;
type ToolMessage = Extract<LanguageModelV3Message, { role: "tool" }>;
type ToolResultPart = Extract<ToolMessage["content"][number], { type: "tool-result" }>;
type MediaPart = Extract<SuppliedPart, { kind: "media" }>;

export interface PromptMapperOptions {
  /** Whose history is replayed with its native parts. */
  readonly modelKey: string;
  /** Where native parts are found in metadata, and where the wire takes them back. */
  readonly metadataKey: string;
  readonly replayKey: string;
  /** Reasoning travels as plain text, so it needs no native part to be replayed. */
  readonly plainReasoning: boolean;
  /** The wire restricts the form of call ids. */
  readonly portableIds: boolean;
}

interface MappedMessage {
  /** Null: nothing of the message can be sent. */
  readonly message: LanguageModelV3Message | null;
  readonly calls: readonly ToolCallPart[];
  readonly answered: ReadonlySet<string>;
  /** Messages of media that follow; absent: none. */
  readonly after?: readonly UserMessage[];
}

const NONE: ReadonlySet<string> = new Set();
const NO_MEDIA: SuppliedMedia = new Map();
const NOT_SUPPLIED: SuppliedPart = { kind: "note", text: "[attachment left out]" };

/**
 * Our history as a provider prompt; each message is mapped once, and is the same object ever after. Those with media are
 * mapped for every request anew.
 */
export class PromptMapper {
  readonly #options: PromptMapperOptions;
  readonly #mapped = new WeakMap<HistoryMessage, MappedMessage>();
  #system: SystemMessage = { role: "system", content: "" };

  constructor(options: PromptMapperOptions) {
    this.#options = options;
  }

  map(
    system: string,
    history: readonly HistoryMessage[],
    media: SuppliedMedia = NO_MEDIA,
  ): LanguageModelV3Prompt {
    const prompt: LanguageModelV3Prompt = [];
    if (system !== this.#system.content) this.#system = { role: "system", content: system };
    if (system !== "") prompt.push(this.#system);
    history.forEach((each, index) => {
      const { message, calls, after } = this.#mapOnce(each, media);
      if (message !== null) prompt.push(message);
      if (after !== undefined) prompt.push(...after);
      if (calls.length === 0) return;
      const next = history[index + 1];
      const answered = next === undefined ? NONE : this.#mapOnce(next, media).answered;
      const missing = calls.filter((call) => !answered.has(call.id));
      if (missing.length > 0) prompt.push(this.#interrupted(missing));
    });
    return prompt;
  }

  #mapOnce(message: HistoryMessage, media: SuppliedMedia): MappedMessage {
    // Which media go along depends on all of the request, and encoded ones are too large to be kept.
    if (hasMedia(message)) return this.#mapMedia(message.results, media);
    const known = this.#mapped.get(message);
    if (known !== undefined) return known;
    const mapped = this.#mapMessage(message);
    this.#mapped.set(message, mapped);
    return mapped;
  }

  /** Media stand in the result where the wire has room for them there, else in one user message per result (T-159). */
  #mapMedia(results: readonly ToolResultMessage[], media: SuppliedMedia): MappedMessage {
    const after: UserMessage[] = [];
    const content = results.map((result) => {
      const { attachments = [], additional = [] } = result;
      const parts = attachments.map((file) => ({ file, part: media.get(file) ?? NOT_SUPPLIED }));
      const notes = parts.flatMap(({ part }) => (part.kind === "note" ? [part.text] : []));
      const inside = parts.flatMap(({ file, part }) =>
        part.kind === "media" && part.placement === "tool_result" ? [toResultPart(file, part)] : [],
      );
      const outside = parts.flatMap(({ file, part }) =>
        part.kind === "media" && part.placement === "user_turn" ? [toFilePart(file, part)] : [],
      );
      if (outside.length > 0) {
        const text = `Attached to the result of ${result.name}:`;
        after.push({ role: "user", content: [{ type: "text", text }, ...outside] });
      }
      after.push(...additional.map((message) => toUserMessage(message, media)));
      const mapped = this.#mapResult({ ...result, output: [result.output, ...notes].join("\n") });
      if (inside.length === 0) return mapped;
      const text = { type: "text" as const, text: textOf(mapped) };
      return { ...mapped, output: { type: "content" as const, value: [text, ...inside] } };
    });
    return {
      message: { role: "tool", content },
      calls: [],
      answered: new Set(results.map(({ callId }) => callId)),
      after,
    };
  }

  #mapMessage(message: HistoryMessage): MappedMessage {
    switch (message.role) {
      case "user":
        return {
          message: { role: "user", content: [{ type: "text", text: message.text }] },
          calls: [],
          answered: NONE,
        };
      case "assistant": {
        const content = this.#mapParts(message.content, message.model.model);
        return {
          message: content.length === 0 ? null : { role: "assistant", content },
          calls: message.content.filter((part) => part.type === "tool_call"),
          answered: NONE,
        };
      }
      case "tool":
        return {
          message: { role: "tool", content: message.results.map((each) => this.#mapResult(each)) },
          calls: [],
          answered: new Set(message.results.map((result) => result.callId)),
        };
    }
  }

  #mapParts(parts: readonly AssistantPart[], source: string): AssistantContent[] {
    const sameModel = source === this.#options.modelKey;
    const content = parts.flatMap((part) => this.#mapPart(part, sameModel));
    // Reasoning belongs to what follows it; alone at the end it is refused.
    while (content.at(-1)?.type === "reasoning") content.pop();
    return content;
  }

  #mapPart(part: AssistantPart, sameModel: boolean): AssistantContent[] {
    const native = sameModel ? this.#nativeOptions(part.metadata) : {};
    switch (part.type) {
      case "text":
        return part.text.trim() === "" ? [] : [{ type: "text", text: part.text, ...native }];
      case "reasoning":
        if (!sameModel) return [];
        if (native.providerOptions === undefined && !this.#options.plainReasoning) return [];
        return [{ type: "reasoning", text: part.text, ...native }];
      case "tool_call":
        return [
          {
            type: "tool-call",
            toolCallId: this.#wireId(part.id),
            toolName: portableToolName(part.name),
            input: isJsonObject(part.input) ? part.input : {},
            ...native,
          },
        ];
    }
  }

  #nativeOptions(metadata: JsonObject | undefined): { providerOptions?: SharedV3ProviderOptions } {
    const facts = metadata?.[this.#options.metadataKey];
    if (!isJsonObject(facts)) return {};
    // Metadata came out of JSON, so it is JSON.
    return {
      providerOptions: { [this.#options.replayKey]: facts as SharedV3ProviderOptions[string] },
    };
  }

  #mapResult(result: ToolResultMessage): ToolResultPart {
    const details =
      result.details === null || Object.keys(result.details).length === 0
        ? ""
        : `\n${JSON.stringify(result.details)}`;
    return {
      type: "tool-result",
      toolCallId: this.#wireId(result.callId),
      toolName: portableToolName(result.name),
      output: { type: result.isError ? "error-text" : "text", value: result.output + details },
    };
  }

  /** No wire accepts a call without a result (B116). */
  #interrupted(calls: readonly ToolCallPart[]): ToolMessage {
    return {
      role: "tool",
      content: calls.map((call) =>
        this.#mapResult({
          callId: call.id,
          name: call.name,
          output: "The call was interrupted before it had a result.",
          isError: true,
          details: null,
        }),
      ),
    };
  }

  #wireId(id: string): string {
    return this.#options.portableIds ? portableCallId(id) : id;
  }
}

function hasMedia(message: HistoryMessage): message is Extract<HistoryMessage, { role: "tool" }> {
  return (
    message.role === "tool" &&
    message.results.some(({ attachments, additional }) => (attachments ?? additional) !== undefined)
  );
}

function textOf({ output }: ToolResultPart): string {
  return output.type === "text" || output.type === "error-text" ? output.value : "";
}

function toResultPart({ mime_type: mediaType, filename }: ToolAttachment, { data }: MediaPart) {
  if (mediaType.startsWith("image/")) return { type: "image-data" as const, data, mediaType };
  return { type: "file-data" as const, data, mediaType, ...(filename !== null && { filename }) };
}

function toFilePart({ mime_type: mediaType, filename }: ToolAttachment, { data }: MediaPart) {
  return { type: "file" as const, data, mediaType, ...(filename !== null && { filename }) };
}

/** Some wires know system messages at the beginning only. */
function toUserMessage({ role, content }: AdditionalMessage, media: SuppliedMedia): UserMessage {
  const parts = content.map((part) => {
    if (part.type === "text") return { type: "text" as const, text: part.text };
    const supplied = media.get(part) ?? NOT_SUPPLIED;
    return supplied.kind === "media"
      ? toFilePart(part, supplied)
      : { type: "text" as const, text: supplied.text };
  });
  const mark = { type: "text" as const, text: "[from the system]" };
  return { role: "user", content: role === "system" ? [mark, ...parts] : parts };
}
