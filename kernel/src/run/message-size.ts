import type { AssistantPart } from "@cookie-agent/sdk/protocol";
import type { HistoryMessage, ToolResultMessage } from "../model/bound-model.ts";

/** Bytes of a message as a request carries it, for estimates: its words and arguments; media add nothing (S 10.3). */
export function byteLengthOf(message: HistoryMessage): number {
  switch (message.role) {
    case "user":
      return FRAME_BYTES + Buffer.byteLength(message.text);
    case "assistant":
      return sum(message.content.map(byteLengthOfPart));
    case "tool":
      return sum(message.results.map(byteLengthOfResult));
  }
}

export function byteLengthOfResult({ output, details, additional }: ToolResultMessage): number {
  const extra = details === null ? 0 : Buffer.byteLength(JSON.stringify(details));
  const texts = (additional ?? []).flatMap(({ content }) =>
    content.map((part) => (part.type === "text" ? Buffer.byteLength(part.text) : 0)),
  );
  return FRAME_BYTES + Buffer.byteLength(output) + extra + sum(texts);
}

function byteLengthOfPart(part: AssistantPart): number {
  return FRAME_BYTES + Buffer.byteLength(JSON.stringify(part));
}

/** Names, roles and braces around what is said. */
const FRAME_BYTES = 32;

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
