import type { LanguageModelV3StreamPart } from "@ai-sdk/provider";
import type { AssistantPart, JsonObject, ModelTurn } from "@cookie-agent/sdk/protocol";
import { cutUtf8 } from "../support/safe-text.ts";
import type { ModelStreamPart } from "./bound-model.ts";
import { CallIds } from "./call-ids.ts";
import { modelError } from "./model-error.ts";
import { parseToolArguments } from "./tool-arguments.ts";
import {
  type CallBlock,
  isCutOff,
  mergeMetadata,
  type TextBlock,
  toCallPart,
  toTextPart,
} from "./turn-block.ts";
import { toFinishReason, toUsage } from "./turn-end.ts";

const MAX_TURN_CHARACTERS = 8 * 1024 * 1024;
const MAX_PARTS = 4096;
const MAX_NAME_BYTES = 512;
const MAX_METADATA_CHARACTERS = 64 * 1024;

export interface TurnAssemblyOptions {
  readonly usedCallIds: ReadonlySet<string>;
  /** Throws the error for an error event. */
  raise(event: unknown): never;
  /** Reads the call ids of a raw wire event, for packages that rename a repeated id. */
  readWireCallIds?(event: unknown): string[];
}

/**
 * One response, from provider parts to our parts and the finished turn. The order of a stream is checked: a delta
 * of a block that is not open, or anything after the finish, is an invalid response.
 */
export class TurnAssembly {
  readonly #options: TurnAssemblyOptions;
  readonly #ids: CallIds;
  readonly #blocks: (TextBlock | CallBlock)[] = [];
  readonly #openText = new Map<string, TextBlock>();
  readonly #openCalls = new Map<string, CallBlock[]>();
  readonly #warnings: string[] = [];
  #wireIds: string[] = [];
  #responseMetadata: JsonObject | undefined;
  #characters = 0;
  #finished = false;

  constructor(options: TurnAssemblyOptions) {
    this.#options = options;
    this.#ids = new CallIds(options.usedCallIds);
  }

  get finished(): boolean {
    return this.#finished;
  }

  *accept(part: LanguageModelV3StreamPart): Generator<ModelStreamPart> {
    if (this.#finished) throw invalid("it continued after its end");
    switch (part.type) {
      case "stream-start":
        this.#warnings.push(...part.warnings.map(describeWarning));
        return;
      case "response-metadata":
        this.#responseMetadata = {
          ...(part.id !== undefined && { id: part.id }),
          ...(part.modelId !== undefined && { model_id: part.modelId }),
        };
        return;
      case "text-start":
        return this.#openBlock("text", part.id, part.providerMetadata);
      case "reasoning-start":
        return this.#openBlock("reasoning", part.id, part.providerMetadata);
      case "text-delta":
      case "reasoning-delta":
        yield* this.#extendBlock(part);
        return;
      case "text-end":
      case "reasoning-end":
        return this.#closeBlock(part.type === "text-end" ? "text" : "reasoning", part);
      case "tool-input-start":
        if (part.providerExecuted !== true) {
          const block = yield* this.#nameCall(part.id, part.toolName);
          const open = this.#openCalls.get(part.id);
          if (open === undefined) this.#openCalls.set(part.id, [block]);
          else open.push(block);
        }
        return;
      case "tool-input-delta":
        return this.#extendCall(part.id, part.delta);
      case "tool-call":
        if (part.providerExecuted !== true) yield* this.#completeCall(part);
        return;
      case "raw":
        this.#wireIds = this.#options.readWireCallIds?.(part.rawValue) ?? [];
        return;
      case "error":
        return this.#options.raise(part.error);
      case "finish":
        yield this.#finish(part);
        return;
      case "tool-input-end":
      case "tool-result":
      case "tool-approval-request":
      case "file":
      case "source":
        return;
    }
  }

  #openBlock(kind: TextBlock["kind"], id: string, metadata: JsonObject | undefined): void {
    const key = `${kind}:${id}`;
    if (this.#openText.has(key)) throw invalid(`the ${kind} block ${id} started twice`);
    const block: TextBlock = { kind, text: "", metadata };
    this.#push(block);
    this.#openText.set(key, block);
  }

  *#extendBlock(
    part: Extract<LanguageModelV3StreamPart, { type: "text-delta" | "reasoning-delta" }>,
  ): Generator<ModelStreamPart> {
    const kind = part.type === "text-delta" ? "text" : "reasoning";
    const block = this.#openText.get(`${kind}:${part.id}`);
    if (block === undefined)
      throw invalid(`a delta of the ${kind} block ${part.id}, which is not open`);
    block.metadata = mergeMetadata(block.metadata, part.providerMetadata);
    if (part.delta === "") return;
    this.#grow(part.delta.length);
    block.text += part.delta;
    yield { type: `${kind}_delta`, text: part.delta };
  }

  #closeBlock(kind: TextBlock["kind"], part: { id: string; providerMetadata?: JsonObject }): void {
    const key = `${kind}:${part.id}`;
    const block = this.#openText.get(key);
    if (block === undefined) throw invalid(`the ${kind} block ${part.id} ended without a start`);
    block.metadata = mergeMetadata(block.metadata, part.providerMetadata);
    this.#openText.delete(key);
  }

  *#nameCall(sdkId: string, toolName: string): Generator<ModelStreamPart, CallBlock> {
    const wireId = this.#wireIdOf(sdkId);
    const block: CallBlock = {
      kind: "call",
      callId: this.#ids.assign(wireId),
      name: cutUtf8(toolName, MAX_NAME_BYTES) || "unnamed",
      wireId,
      sizeBytes: 0,
      text: null,
      parsed: null,
      metadata: undefined,
      repeated: false,
    };
    this.#push(block);
    yield { type: "tool_named", callId: block.callId, name: block.name };
    return block;
  }

  #extendCall(sdkId: string, delta: string): void {
    const block = this.#openCalls.get(sdkId)?.at(-1);
    if (block === undefined) throw invalid(`arguments of the call ${sdkId}, which was never named`);
    this.#grow(delta.length);
    block.sizeBytes += Buffer.byteLength(delta);
  }

  *#completeCall(
    part: Extract<LanguageModelV3StreamPart, { type: "tool-call" }>,
  ): Generator<ModelStreamPart> {
    const block =
      this.#openCalls.get(part.toolCallId)?.shift() ??
      (yield* this.#nameCall(part.toolCallId, part.toolName));
    if (block.sizeBytes === 0) this.#grow(part.input.length);
    block.text = part.input;
    block.parsed = parseToolArguments(part.input);
    block.metadata = mergeMetadata(block.metadata, part.providerMetadata);
    block.repeated = this.#blocks.some(
      (other) =>
        other !== block &&
        other.kind === "call" &&
        other.wireId === block.wireId &&
        other.name === block.name &&
        other.text === block.text,
    );
    if (block.repeated || block.parsed.kind !== "object") return;
    yield { type: "tool_arguments", part: toCallPart(block) };
  }

  #finish(part: Extract<LanguageModelV3StreamPart, { type: "finish" }>): ModelStreamPart {
    this.#finished = true;
    const { unified, raw } = part.finishReason;
    if (unified === "other" && raw === undefined) {
      throw modelError({
        kind: "unexpected_eof",
        stage: "stream_finalize",
        message: "the response ended without saying why",
      });
    }
    if (unified === "error") {
      throw modelError({
        kind: "provider",
        stage: "stream_event",
        message: "the response ended with an error that the provider does not name",
        retryable: true,
      });
    }
    const content: AssistantPart[] = [];
    let cutOff = false;
    for (const block of this.#blocks) {
      if (block.kind !== "call") {
        const written = toTextPart(block);
        if (written !== null) content.push(written);
      } else if (isCutOff(block, unified === "length" && block === this.#blocks.at(-1))) {
        cutOff = true;
        const size = Math.max(block.sizeBytes, Buffer.byteLength(block.text ?? ""));
        this.#warnings.push(
          `the call of ${block.name} was cut off after ${size} bytes of arguments and was not run`,
        );
      } else if (!block.repeated) {
        content.push(toCallPart(block));
      }
    }
    const calls = content.some((each) => each.type === "tool_call");
    const turn: ModelTurn = {
      content,
      finish_reason: cutOff ? "length" : toFinishReason(unified, raw, calls),
      usage: toUsage(part.usage),
      ...(this.#responseMetadata !== undefined && { response_metadata: this.#responseMetadata }),
      ...boundedMetadata(part.providerMetadata),
    };
    return { type: "finish", turn, warnings: this.#warnings.slice(0, 256) };
  }

  /** A package that renames a repeated id hides that the call was sent twice; the raw event still says so. */
  #wireIdOf(sdkId: string): string {
    if (this.#wireIds.includes(sdkId)) return sdkId;
    const seen = (id: string) =>
      this.#blocks.some((block) => block.kind === "call" && block.wireId === id);
    return this.#wireIds.find(seen) ?? sdkId;
  }

  #push(block: TextBlock | CallBlock): void {
    if (this.#blocks.length >= MAX_PARTS) throw invalid(`it has more than ${MAX_PARTS} parts`);
    this.#blocks.push(block);
  }

  #grow(characters: number): void {
    this.#characters += characters;
    if (this.#characters > MAX_TURN_CHARACTERS) throw invalid("it is larger than 8 MiB");
  }
}

function boundedMetadata(metadata: JsonObject | undefined): { provider_metadata?: JsonObject } {
  if (metadata === undefined || saysNothing(metadata)) return {};
  if (JSON.stringify(metadata).length > MAX_METADATA_CHARACTERS) return {};
  return { provider_metadata: metadata };
}

/** Packages name themselves even when they have nothing to say. */
function saysNothing(metadata: JsonObject): boolean {
  return Object.values(metadata).every(
    (each) => typeof each === "object" && each !== null && Object.keys(each).length === 0,
  );
}

function describeWarning(
  warning: Extract<LanguageModelV3StreamPart, { type: "stream-start" }>["warnings"][number],
): string {
  if (warning.type === "other") return warning.message;
  return `${warning.feature}: ${warning.details ?? "not supported by this model"}`;
}

function invalid(what: string): Error {
  return modelError({
    kind: "invalid_response",
    stage: "stream_event",
    message: `the response cannot be used: ${what}`,
  });
}
