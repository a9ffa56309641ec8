import { BOM } from "./text-scan.ts";

/** One place in a file that an edit replaces, in bytes. */
export interface TextMatch {
  readonly start: number;
  readonly end: number;
}

/** What a search found: every match's line, and the first match itself. */
export interface MatchResult {
  readonly count: number;
  /** One-based lines of the first matches, at most 20. */
  readonly lines: readonly number[];
  readonly first: TextMatch | undefined;
}

const MAX_LISTED_LINES = 20;
const CR = 0x0d;
const LF = 0x0a;
const CRLF = Buffer.from("\r\n");

/**
 * Finds text literally, counted without overlap; a line break, LF or CRLF, matches LF and CRLF (T-066).
 * A byte order mark at the file's start is not part of the text.
 */
export function findText(file: Buffer, oldText: string): MatchResult {
  const textStart = file.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  const view = new BreakView(file.subarray(textStart));
  const needle = Buffer.from(oldText.replaceAll("\r\n", "\n"));
  const lines: number[] = [];
  let count = 0;
  let line = 1;
  let counted = 0;
  let first: TextMatch | undefined;
  let at = view.text.indexOf(needle);
  while (at !== -1) {
    const end = at + needle.length;
    first ??= {
      start: textStart + view.filePosition(at),
      end: textStart + view.filePosition(end),
    };
    if (lines.length < MAX_LISTED_LINES) {
      line += countNewlines(view.text.subarray(counted, at));
      counted = at;
      lines.push(line);
    }
    count += 1;
    at = view.text.indexOf(needle, end);
  }
  return { count, lines, first };
}

/**
 * The bytes that take a match's place (T-065): the n-th line break takes the ending of the n-th replaced one;
 * surplus ones take the last replaced ending, else that of the match's own line, else the file's first, else LF.
 */
export function replaceBreaks(file: Buffer, match: TextMatch, newText: string): Buffer {
  const replaced = endingsOf(file.subarray(match.start, match.end));
  const surplus = replaced.at(-1) ?? nextEnding(file, match.end) ?? nextEnding(file, 0) ?? "\n";
  // A carriage return at the end belongs to the break that follows the match, which is kept.
  const text = breakFollows(file, match.end) ? newText.replace(/\r+$/, "") : newText;
  let index = 0;
  return Buffer.from(
    text.replace(/\r*\n/g, () => {
      const ending = replaced[index] ?? surplus;
      index += 1;
      return ending;
    }),
  );
}

/** The text with every CRLF as LF, and the way back from its positions to those of the file. */
class BreakView {
  readonly text: Buffer;
  /** Position in `text` of every line feed that stands for a CRLF. */
  readonly #crlf: number[] = [];

  constructor(bytes: Buffer) {
    let at = bytes.indexOf(CRLF);
    if (at === -1) {
      this.text = bytes;
      return;
    }
    const text = Buffer.allocUnsafe(bytes.length);
    let length = 0;
    let copied = 0;
    while (at !== -1) {
      length += bytes.copy(text, length, copied, at);
      this.#crlf.push(length);
      copied = at + 1;
      at = bytes.indexOf(CRLF, at + 2);
    }
    length += bytes.copy(text, length, copied);
    this.text = text.subarray(0, length);
  }

  /** Where a position of `text` lies in the file: one byte further for every CRLF before it. */
  filePosition(position: number): number {
    let low = 0;
    let high = this.#crlf.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#crlf[middle] ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return position + low;
  }
}

function endingsOf(bytes: Buffer): string[] {
  const endings: string[] = [];
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    endings.push(at > 0 && bytes[at - 1] === CR ? "\r\n" : "\n");
  }
  return endings;
}

function nextEnding(file: Buffer, from: number): string | undefined {
  const at = file.indexOf(LF, from);
  if (at === -1) return undefined;
  return at > 0 && file[at - 1] === CR ? "\r\n" : "\n";
}

function breakFollows(file: Buffer, position: number): boolean {
  return file[position] === LF || (file[position] === CR && file[position + 1] === LF);
}

function countNewlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) count += 1;
  return count;
}
