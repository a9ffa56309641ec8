import type { HistoryMessage } from "../model/bound-model.ts";
import type { MessageFacts } from "./history.ts";

type Messages = readonly Pick<HistoryMessage, "role">[];
type Facts = readonly Readonly<MessageFacts>[];

/** Where the messages begin that were said in this run and that no model has answered: they are never folded away. */
export function unansweredFrom(messages: Messages, facts: Facts, runFromSeq: number): number {
  let from = messages.length;
  while (messages[from - 1]?.role === "user" && (facts[from - 1]?.seq ?? 0) >= runFromSeq) {
    if (facts[from - 1]?.seq === 0) break;
    from -= 1;
  }
  return from;
}

/**
 * Where the recent messages begin that stay beside a summary: whole groups before `end`, an assistant's calls together
 * with their results, newest first until one does not fit (S 10.5). `end` when even the newest is too large.
 */
export function recentFrom(
  messages: Messages,
  facts: Facts,
  end: number,
  roomBytes: number,
): number {
  let from = end;
  let left = roomBytes;
  for (;;) {
    const start = groupStart(messages, from);
    if (start === null || (facts[start]?.seq ?? 0) === 0) return from;
    left -= sizeOf(facts, start, from);
    if (left < 0) return from;
    from = start;
  }
}

function groupStart(messages: Messages, end: number): number | null {
  for (let start = end - 1; start >= 0; start -= 1) {
    if (messages[start]?.role !== "tool") return start;
  }
  return null;
}

function sizeOf(facts: Facts, start: number, end: number): number {
  let byteLength = 0;
  for (let index = start; index < end; index += 1) byteLength += facts[index]?.byteLength ?? 0;
  return byteLength;
}
