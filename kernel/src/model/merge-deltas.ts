/** An event of one data line, with at most a line that names it. */
const EVENT = /^(?:event: ?[\w.]+\n)?data: ?\{.*$/;
/** Members that say nothing. */
const EMPTY = String.raw`"\w+": ?(?:null|""|"assistant"|"(?:text|thinking|input_json)_delta")`;
/** Where the text of a delta begins, and what may stand between its end and that of the delta. */
const SHAPES: readonly { readonly start: RegExp; readonly rest: RegExp }[] = [
  {
    start: new RegExp(
      `"delta": ?\\{(?:${EMPTY}, ?)*"(?:content|reasoning_content|reasoning|text|thinking|partial_json)": ?"`,
      "g",
    ),
    rest: new RegExp(`(?:, ?${EMPTY})*\\}`, "y"),
  },
  {
    start: new RegExp(
      `"delta": ?\\{(?:${EMPTY}, ?)*"tool_calls": ?\\[\\{"index": ?\\d+, ?(?:"type": ?"function", ?)?"function": ?\\{"arguments": ?"`,
      "g",
    ),
    rest: /\}\}\]\}/y,
  },
  {
    start:
      /^event: ?response\.(?:output_text|reasoning_text|reasoning_summary_text|function_call_arguments)\.delta\n.*?"delta": ?"/g,
    rest: /(?=[,}])/y,
  },
];
/** Members that differ from one delta to the next and that nobody reads. */
const COUNTERS = /"(?:created|sequence_number)": ?\d+|"obfuscation": ?"[^"\\]*"/g;

/** An answer without streamed text has hardly more than these; looking through them would cost more than it saves. */
const FEW_EVENTS = 6;

/** One event whose text can be joined with the text of the next. */
interface Delta {
  /** All before the text, and all behind it. */
  readonly before: string;
  readonly text: string;
  readonly behind: string;
}

/**
 * Joins neighbouring text deltas of an event stream that came in one piece of its body, because every event costs
 * far more on its way through the provider package than its text. All else passes as it came, byte for byte.
 */
export class DeltaMerger {
  /** The last piece ended within an event. */
  #isWithinEvent = false;

  merge(piece: Uint8Array): Uint8Array {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    const start = this.#isWithinEvent ? endOfEvent(bytes.indexOf("\n\n")) : 0;
    const end = endOfEvent(bytes.lastIndexOf("\n\n"));
    this.#isWithinEvent = end < bytes.byteLength;
    if (end <= start) return piece;
    const events = bytes.toString("utf8", start, end).split("\n\n");
    if (events.length <= FEW_EVENTS) return piece;
    const merged = mergeEvents(events);
    if (merged.length === events.length) return piece;
    return Buffer.concat([
      bytes.subarray(0, start),
      Buffer.from(merged.join("\n\n")),
      bytes.subarray(end),
    ]);
  }
}

function endOfEvent(separator: number): number {
  return separator < 0 ? 0 : separator + 2;
}

function mergeEvents(events: readonly string[]): string[] {
  const merged: string[] = [];
  let first: Delta | undefined;
  let text = "";
  const closeRun = () => {
    if (first !== undefined) merged.push(first.before + text + first.behind);
    first = undefined;
  };
  for (const event of events) {
    const next = first && readNext(event, first);
    if (next !== undefined) {
      text += next;
      continue;
    }
    const delta = readDelta(event);
    if (delta !== undefined && first !== undefined && isSameBlock(first, delta)) {
      text += delta.text;
      continue;
    }
    closeRun();
    if (delta === undefined) {
      merged.push(event);
    } else {
      first = delta;
      text = delta.text;
    }
  }
  closeRun();
  return merged;
}

/** The text of an event that differs from the first of its run in nothing else; a quick look that may miss some. */
function readNext(event: string, { before, behind }: Delta): string | undefined {
  const end = event.length - behind.length;
  if (end < before.length || !event.startsWith(before) || !event.endsWith(behind)) return undefined;
  const text = event.slice(before.length, end);
  return text.includes('"') || text.endsWith("\\") ? undefined : text;
}

/** Texts are compared and joined as JSON writes them, so nothing has to be parsed. */
function readDelta(event: string): Delta | undefined {
  if (!EVENT.test(event)) return undefined;
  for (const { start, rest } of SHAPES) {
    const from = endOfMatch(start, event, 0);
    if (from < 0) continue;
    const end = endOfLiteral(event, from);
    if (end < 0 || endOfMatch(rest, event, end + 1) < 0) continue;
    return { before: event.slice(0, from), text: event.slice(from, end), behind: event.slice(end) };
  }
  return undefined;
}

function isSameBlock(one: Delta, other: Delta): boolean {
  if (one.before === other.before && one.behind === other.behind) return true;
  return (
    one.before.replace(COUNTERS, "") === other.before.replace(COUNTERS, "") &&
    one.behind.replace(COUNTERS, "") === other.behind.replace(COUNTERS, "")
  );
}

/** Where the next match ends; sticky and global patterns look from `from` on. */
function endOfMatch(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** The quote that ends the JSON text begun before `from`, or -1. */
function endOfLiteral(event: string, from: number): number {
  let quote = event.indexOf('"', from);
  while (quote >= 0) {
    let escapes = quote;
    while (escapes > from && event[escapes - 1] === "\\") escapes -= 1;
    if ((quote - escapes) % 2 === 0) return quote;
    quote = event.indexOf('"', quote + 1);
  }
  return -1;
}
