import type { LanguageModelV3Message } from "@ai-sdk/provider";
import type { AdditionalMessage, ToolAttachment } from "@cookie-agent/sdk/protocol";
import type {
  HistoryMessage,
  SuppliedMedia,
  SuppliedPart,
  ToolResultMessage,
} from "./bound-model.ts";

type ToolMessage = Extract<LanguageModelV3Message, { role: "tool" }>;
export type UserMessage = Extract<LanguageModelV3Message, { role: "user" }>;
export type ToolResultPart = Extract<ToolMessage["content"][number], { type: "tool-result" }>;
type ContentPart = Extract<ToolResultPart["output"], { type: "content" }>["value"][number];
type MediaPart = Extract<SuppliedPart, { kind: "media" }>;

/** Results of tools, with media in some of them. */
export type MediaMessage = Extract<HistoryMessage, { role: "tool" }>;

export const NOT_SUPPLIED: SuppliedPart = { kind: "note", text: "[attachment left out]" };

/** Where the media of one result stand in a prompt. */
export interface PlacedMedia {
  readonly inside: readonly ContentPart[];
  /** Words for what is left out, to stand behind the result's text. */
  readonly notes: readonly string[];
  readonly after: readonly UserMessage[];
}

export function hasMedia(message: HistoryMessage): message is MediaMessage {
  return (
    message.role === "tool" &&
    message.results.some(({ attachments, additional }) => (attachments ?? additional) !== undefined)
  );
}

/** In the order of their results, oldest first. */
export function mediaPartsOf({ results }: MediaMessage): ToolAttachment[] {
  return results.flatMap(mediaOfResult);
}

export function mediaOfResult({
  attachments = [],
  additional = [],
}: Pick<ToolResultMessage, "attachments" | "additional">): ToolAttachment[] {
  return [
    ...attachments,
    ...additional.flatMap(({ content }) => content.filter((part) => part.type === "file")),
  ];
}

/** In the result where the wire has room for them there, else in one user message behind all results (T-159). */
export function placeMedia(result: ToolResultMessage, media: SuppliedMedia): PlacedMedia {
  const { name, attachments = [], additional = [] } = result;
  const inside: ContentPart[] = [];
  const outside: UserMessage["content"] = [];
  const notes: string[] = [];
  for (const file of attachments) {
    const part = media.get(file) ?? NOT_SUPPLIED;
    if (part.kind === "note") notes.push(part.text);
    else if (part.placement === "tool_result") inside.push(toResultPart(file, part));
    else outside.push(toFilePart(file, part));
  }
  const text = `Attached to the result of ${name}:`;
  return {
    inside,
    notes,
    after: [
      ...(outside.length > 0
        ? [{ role: "user" as const, content: [{ type: "text" as const, text }, ...outside] }]
        : []),
      ...additional.map((message) => toUserMessage(message, media)),
    ],
  };
}

/** No wire takes media in what it flags as an error, so such a result says it in its words alone. */
export function withMedia(result: ToolResultPart, inside: readonly ContentPart[]): ToolResultPart {
  const { output } = result;
  if (inside.length === 0 || (output.type !== "text" && output.type !== "error-text")) {
    return result;
  }
  const text = { type: "text" as const, text: output.value };
  return { ...result, output: { type: "content", value: [text, ...inside] } };
}

function toResultPart(file: ToolAttachment, { data }: MediaPart): ContentPart {
  const { mime_type: mediaType, filename } = file;
  if (mediaType.startsWith("image/")) return { type: "image-data", data, mediaType };
  return { type: "file-data", data, mediaType, ...(filename !== null && { filename }) };
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
