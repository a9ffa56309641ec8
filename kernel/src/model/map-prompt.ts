import type {
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type { AssistantPart, JsonObject, ToolCallPart } from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";
import type {
  HistoryMessage,
  SuppliedMedia,
  SuppliedPart,
  ToolResultMessage,
} from "./bound-model.ts";
import { portableCallId, portableToolName } from "./call-ids.ts";
import {
  hasMedia,
  type MediaMessage,
  mediaPartsOf,
  NOT_SUPPLIED,
  placeMedia,
  type ToolResultPart,
  type UserMessage,
  withMedia,
} from "./place-media.ts";

type AssistantMessage = Extract<LanguageModelV3Message, { role: "assistant" }>;
type AssistantContent = AssistantMessage["content"][number];
type SystemMessage = Extract<LanguageModelV3Message, { role: "system" }>;
type ToolMessage = Extract<LanguageModelV3Message, { role: "tool" }>;

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

interface MappedMedia {
  /** What was supplied for the parts of the message, in their order. */
  readonly supplied: readonly SuppliedPart[];
  readonly mapped: MappedMessage;
}

/** What a message became in front of a certain next one. */
interface MappedPassage {
  readonly message: HistoryMessage;
  readonly next: HistoryMessage | undefined;
  readonly mapped: readonly LanguageModelV3Message[];
}

const NONE: ReadonlySet<string> = new Set();
const NO_MEDIA: SuppliedMedia = new Map();

/**
 * Our history as a provider prompt; each message is mapped once, and is the same object ever after. One with media is
 * mapped anew when other media are supplied for it.
 */
export class PromptMapper {
  readonly #options: PromptMapperOptions;
  readonly #mapped = new WeakMap<HistoryMessage, MappedMessage>();
  readonly #mappedMedia = new WeakMap<HistoryMessage, MappedMedia>();
  /** Of the last history, by position: the next one is mostly the same and a little more. */
  readonly #passages: (MappedPassage | undefined)[] = [];
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
    this.#passages.length = Math.min(this.#passages.length, history.length);
    history.forEach((message, index) => {
      const next = history[index + 1];
      const known = this.#passages[index];
      const isKnown = known !== undefined && known.message === message && known.next === next;
      for (const each of isKnown ? known.mapped : this.#mapAt(index, message, next, media)) {
        prompt.push(each);
      }
    });
    return prompt;
  }

  #mapAt(
    index: number,
    message: HistoryMessage,
    next: HistoryMessage | undefined,
    media: SuppliedMedia,
  ): readonly LanguageModelV3Message[] {
    const mapped = this.#mapPassage(message, next, media);
    // What is mapped anew as its media change is not the same every time.
    const changes = hasMedia(message) || (next !== undefined && hasMedia(next));
    this.#passages[index] = changes ? undefined : { message, next, mapped };
    return mapped;
  }

  /** A message and what has to stand before the next one. */
  #mapPassage(
    message: HistoryMessage,
    next: HistoryMessage | undefined,
    media: SuppliedMedia,
  ): readonly LanguageModelV3Message[] {
    const { message: mapped, calls, after = [] } = this.#mapOnce(message, media);
    const passage = mapped === null ? [...after] : [mapped, ...after];
    if (calls.length === 0) return passage;
    const answered = next === undefined ? NONE : this.#mapOnce(next, media).answered;
    const missing = calls.filter((call) => !answered.has(call.id));
    if (missing.length > 0) passage.push(this.#interrupted(missing));
    return passage;
  }

  #mapOnce(message: HistoryMessage, media: SuppliedMedia): MappedMessage {
    if (hasMedia(message)) return this.#mapMediaOnce(message, media);
    const known = this.#mapped.get(message);
    if (known !== undefined) return known;
    const mapped = this.#mapMessage(message);
    this.#mapped.set(message, mapped);
    return mapped;
  }

  /** Which media go along depends on all of the request. */
  #mapMediaOnce(message: MediaMessage, media: SuppliedMedia): MappedMessage {
    const supplied = mediaPartsOf(message).map((part) => media.get(part) ?? NOT_SUPPLIED);
    const known = this.#mappedMedia.get(message);
    if (known?.supplied.every((part, index) => part === supplied[index])) return known.mapped;
    const mapped = this.#mapMedia(message.results, media);
    this.#mappedMedia.set(message, { supplied, mapped });
    return mapped;
  }

  #mapMedia(results: readonly ToolResultMessage[], media: SuppliedMedia): MappedMessage {
    const after: UserMessage[] = [];
    const content = results.map((result) => {
      const placed = placeMedia(result, media);
      after.push(...placed.after);
      const output = [result.output, ...placed.notes].join("\n");
      return withMedia(this.#mapResult({ ...result, output }), placed.inside);
    });
    const answered = new Set(results.map(({ callId }) => callId));
    return { message: { role: "tool", content }, calls: [], answered, after };
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
