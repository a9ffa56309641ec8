import type { HistoryMessage } from "../model/bound-model.ts";
import { cutUtf8 } from "../support/safe-text.ts";
import { byteLengthOf, sum } from "./message-size.ts";

/** A text may take this part of the room before it loses its middle. */
const TEXT_SHARE = 8;

/**
 * Makes messages of plain words fit into some bytes: long texts lose their middle, then the oldest messages go, each
 * with a note in its place (B122). The first message stays when it sums up what was before the others.
 */
export function trimHistory(
  messages: readonly HistoryMessage[],
  roomBytes: number,
  keepsFirst: boolean,
): HistoryMessage[] {
  if (sum(messages.map(byteLengthOf)) <= roomBytes) return [...messages];
  const perText = Math.max(256, Math.floor(roomBytes / TEXT_SHARE));
  const shortened = messages.map((message) => shorten(message, perText));
  const head = keepsFirst ? shortened.slice(0, 1) : [];
  const rest = shortened.slice(head.length);
  let left = roomBytes - sum(head.map(byteLengthOf)) - 128;
  let from = rest.length;
  for (; from > 0; from -= 1) {
    const message = rest[from - 1];
    if (message === undefined) break;
    left -= byteLengthOf(message);
    if (left < 0) break;
  }
  if (from === 0) return shortened;
  const text = `[${from} messages were left out here: the conversation is too long]`;
  return [...head, { role: "user", text, injected: true }, ...rest.slice(from)];
}

function shorten(message: HistoryMessage, maxBytes: number): HistoryMessage {
  switch (message.role) {
    case "user":
      return { ...message, text: cutMiddle(message.text, maxBytes) };
    case "assistant": {
      const content = message.content.map((part) =>
        part.type === "text" ? { type: part.type, text: cutMiddle(part.text, maxBytes) } : part,
      );
      return { ...message, content };
    }
    case "tool":
      return message;
  }
}

function cutMiddle(text: string, maxBytes: number): string {
  const byteLength = Buffer.byteLength(text);
  if (byteLength <= maxBytes) return text;
  const start = cutUtf8(text, Math.floor(maxBytes / 2));
  // A character of the end that is cut in two is one that was left out.
  const end = Buffer.from(text)
    .subarray(byteLength - Math.floor(maxBytes / 4))
    .toString("utf8")
    .replace(/^\uFFFD+/, "");
  return `${start}\n[${byteLength - Buffer.byteLength(start) - Buffer.byteLength(end)} bytes left out]\n${end}`;
}
