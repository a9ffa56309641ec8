import type { AssistantPart, JsonObject, ToolCallPart } from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";
import type { ParsedArguments } from "./tool-arguments.ts";

export interface TextBlock {
  readonly kind: "text" | "reasoning";
  text: string;
  metadata: JsonObject | undefined;
}

export interface CallBlock {
  readonly kind: "call";
  readonly callId: string;
  readonly name: string;
  /** The id on the wire, which may repeat. */
  readonly wireId: string;
  /** Bytes of arguments that streamed, and the whole text once it is there. */
  sizeBytes: number;
  text: string | null;
  parsed: ParsedArguments | null;
  metadata: JsonObject | undefined;
  /** The same call sent again; answered once (B118). */
  repeated: boolean;
}

/** Whether the arguments of a call are incomplete, or never came before a length stop. */
export function isCutOff(block: CallBlock, lastBeforeLengthStop: boolean): boolean {
  if (block.parsed === null || block.parsed.kind === "cut_off") return true;
  if (!lastBeforeLengthStop || block.parsed.kind !== "object") return false;
  return block.sizeBytes === 0 && Object.keys(block.parsed.input).length === 0;
}

export function toCallPart(block: CallBlock): ToolCallPart {
  const input = block.parsed?.kind === "object" ? block.parsed.input : null;
  return {
    type: "tool_call",
    id: block.callId,
    provider_item_id: readItemId(block.metadata),
    name: block.name,
    input,
    raw_input: input === null ? (block.text ?? "") : null,
    ...(block.metadata !== undefined && { metadata: block.metadata }),
  };
}

/** An empty block is nothing, unless it carries what only the provider understands. */
export function toTextPart(block: TextBlock): AssistantPart | null {
  if (block.text === "" && (block.kind === "text" || block.metadata === undefined)) return null;
  return {
    type: block.kind,
    text: block.text,
    ...(block.metadata !== undefined && { metadata: block.metadata }),
  };
}

function readItemId(metadata: JsonObject | undefined): string | null {
  const namespace = metadata?.openai;
  const id = isJsonObject(namespace) ? namespace.itemId : undefined;
  return typeof id === "string" && id !== "" && Buffer.byteLength(id) <= 512 ? id : null;
}

/** Facts of one provider come in pieces; later ones add to earlier ones. */
export function mergeMetadata(
  before: JsonObject | undefined,
  after: JsonObject | undefined,
): JsonObject | undefined {
  if (after === undefined || before === undefined) return after ?? before;
  const merged: JsonObject = { ...before };
  for (const [namespace, facts] of Object.entries(after)) {
    const known = merged[namespace];
    merged[namespace] = isJsonObject(known) && isJsonObject(facts) ? { ...known, ...facts } : facts;
  }
  return merged;
}
