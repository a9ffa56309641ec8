import {
  CookieError,
  type SessionId,
  type SkippedEvent,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { FIRST_LINE, followLine, type LineContext } from "./line-context.ts";
import { parseRecord } from "./parse-record.ts";
import { type RecordBytes, type RecordLine, RecordSplitter } from "./split-records.ts";

/** What reading a log yields, in file order; `end` is always the last. */
export type LogItem =
  | LoggedEvent
  | { readonly kind: "skipped"; readonly skipped: SkippedEvent }
  | LogEnd;

export interface LoggedEvent {
  readonly kind: "event";
  readonly event: StoredEvent;
  readonly startByte: number;
  readonly endByte: number;
  readonly degraded: readonly string[];
  /** What was known from the lines before. */
  readonly before: LineContext;
}

export interface LogEnd {
  readonly kind: "end";
  /** Where an owner truncates: the end of the last line worth keeping (S-056). */
  readonly completeByte: number;
  /** Above every sequence number read or skipped (S-058). */
  readonly nextSeq: number;
  /** What is known behind the last line. */
  readonly context: LineContext;
}

export interface ReadFrom {
  /** Where a record begins; 0 reads the whole log and demands its beginning. */
  readonly startByte: number;
  /** The sequence number before that record. */
  readonly lastSeq: number;
  /** What is known from the lines before it. */
  readonly context: LineContext;
}

const WHOLE_LOG: ReadFrom = { startByte: 0, lastSeq: 0, context: FIRST_LINE };
const NUL = 0x00;
/** How far ahead a broken line may claim to be and still raise the next sequence number. */
const MAX_CLAIMED_LEAD = 1_000_000;

/**
 * Reads as much of a log as can be read (S 2.5), a batch for each chunk. Damage costs the damaged records only and is
 * reported; it rejects with `storage_failed` when the log has no readable beginning or its order is broken.
 */
export async function* readLog(
  chunks: AsyncIterable<Uint8Array>,
  sessionId: SessionId,
  from: ReadFrom = WHOLE_LOG,
): AsyncGenerator<readonly LogItem[], void, void> {
  const splitter = new RecordSplitter(from.startByte);
  const reader = new LogReader(sessionId, from);
  for await (const chunk of chunks) yield reader.read(splitter.push(chunk));
  yield reader.finish(splitter.startByte);
}

/** A broken line that is reported only once it is known not to be a piece of what follows. */
interface Fragment {
  readonly bytes: RecordBytes;
  readonly startByte: number;
  readonly skipped: SkippedEvent;
  blankFollows: boolean;
}

const NO_BEGINNING = "it does not begin with a readable session_created";

class LogReader {
  readonly #sessionId: SessionId;
  #lineNumber = 0;
  #lastSeq: number;
  #lastLine: RecordBytes | undefined;
  #highestSkipped = 0;
  #expectedSeq: number;
  #begun: boolean;
  #context: LineContext;
  #fragment: Fragment | undefined;
  /** What the lines since the last batch have brought to light. */
  #found: LogItem[] = [];

  constructor(sessionId: SessionId, from: ReadFrom) {
    this.#sessionId = sessionId;
    this.#begun = from.startByte > 0;
    this.#lastSeq = from.lastSeq;
    this.#expectedSeq = from.lastSeq + 1;
    this.#context = from.context;
  }

  read(lines: readonly RecordLine[]): readonly LogItem[] {
    for (const line of lines) this.#readLine(line);
    return this.#takeFound();
  }

  #takeFound(): LogItem[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }

  #readLine(line: RecordLine): void {
    this.#lineNumber += 1;
    const { source, startByte } = line;
    if (line.isTooLong) {
      this.#flushFragment();
      this.#skip(undefined, `the line at byte ${startByte} is too long`);
      return;
    }
    const bytes = trimNuls(line);
    const nulCount = lengthOf(line) - lengthOf(bytes);
    if (nulCount > 0) {
      this.#flushFragment();
      this.#skip(undefined, `${nulCount} NUL bytes in the line at byte ${startByte}`);
    }
    const text = source.toString("utf8", bytes.from, bytes.to);
    if (text.trim() === "") {
      if (this.#fragment !== undefined) this.#fragment.blankFollows = true;
      return;
    }
    this.#readRecord(line, bytes, text);
  }

  finish(completeByte: number): readonly LogItem[] {
    // A broken line and a blank one at the very end are what a torn write followed by a newline leaves (B110).
    const torn = this.#fragment?.blankFollows ? this.#fragment.startByte : undefined;
    if (torn === undefined) this.#flushFragment();
    if (!this.#begun) throw this.#corrupt(NO_BEGINNING, 1);
    this.#found.push({
      kind: "end",
      completeByte: torn ?? completeByte,
      nextSeq: Math.max(this.#lastSeq, this.#highestSkipped) + 1,
      context: this.#context,
    });
    return this.#takeFound();
  }

  #readRecord(line: RecordLine, bytes: RecordBytes, text: string): void {
    const before = this.#context;
    const record = parseRecord(text, this.#sessionId, before);
    if (record.kind === "unreadable") {
      this.#context = record.after ?? before;
      this.#flushFragment();
      if (!record.fragment) {
        this.#skip(record.seq, record.reason);
        return;
      }
      const reason = `${record.reason} (line at byte ${line.startByte})`;
      const skipped = { ...this.#place(this.#credible(record.seq)), reason };
      this.#fragment = { bytes, startByte: line.startByte, skipped, blankFollows: false };
      return;
    }
    const { event, degraded } = record;
    if (this.#fragment !== undefined) {
      if (isCopyOf(this.#fragment, bytes, event.seq)) this.#fragment = undefined;
      this.#flushFragment();
    }
    if (
      event.seq === this.#lastSeq &&
      this.#lastLine !== undefined &&
      endsAlike(this.#lastLine, bytes)
    )
      return;
    if (event.seq <= this.#lastSeq) {
      throw this.#corrupt(`event ${event.seq} follows event ${this.#lastSeq}`);
    }
    this.#checkBeginning(event);
    if (event.seq > this.#expectedSeq) this.#missing(this.#expectedSeq, event.seq - 1);
    this.#lastSeq = event.seq;
    this.#expectedSeq = event.seq + 1;
    this.#lastLine = bytes;
    const { startByte } = line;
    const endByte = startByte + lengthOf(line) + 1;
    this.#context = followLine(before, event);
    this.#found.push({ kind: "event", event, startByte, endByte, degraded, before });
  }

  #checkBeginning(event: StoredEvent): void {
    if (this.#begun) return;
    if (event.seq !== 1 || event.payload.type !== "session_created") {
      throw this.#corrupt(NO_BEGINNING, 1);
    }
    this.#begun = true;
  }

  #flushFragment(): void {
    const fragment = this.#fragment;
    if (fragment === undefined) return;
    this.#fragment = undefined;
    const { seq } = fragment.skipped;
    if (seq !== undefined) this.#highestSkipped = Math.max(this.#highestSkipped, seq);
    // A torn number may name any event: it counts as present only where one is due.
    if (seq === this.#expectedSeq) this.#expectedSeq += 1;
    this.#found.push({ kind: "skipped", skipped: fragment.skipped });
  }

  #skip(statedSeq: number | undefined, reason: string): void {
    const seq = this.#credible(statedSeq);
    if (seq !== undefined) {
      if (seq > this.#expectedSeq) this.#missing(this.#expectedSeq, seq - 1);
      this.#expectedSeq = Math.max(this.#expectedSeq, seq + 1);
      this.#highestSkipped = Math.max(this.#highestSkipped, seq);
    }
    this.#found.push({ kind: "skipped", skipped: { ...this.#place(seq), reason } });
  }

  #place(seq: number | undefined): { seq: number } | { line: number } {
    return seq === undefined ? { line: this.#lineNumber } : { seq };
  }

  #missing(firstSeq: number, lastSeq: number): void {
    const reason =
      firstSeq === lastSeq
        ? `event ${firstSeq} is missing`
        : `events ${firstSeq} to ${lastSeq} are missing`;
    this.#found.push({ kind: "skipped", skipped: { seq: firstSeq, reason } });
  }

  #credible(seq: number | undefined): number | undefined {
    if (seq === undefined || seq <= this.#lastSeq) return undefined;
    return seq <= this.#lastSeq + MAX_CLAIMED_LEAD ? seq : undefined;
  }

  #corrupt(problem: string, lineNumber = this.#lineNumber): CookieError {
    return new CookieError(
      "storage_failed",
      `the event log of session ${this.#sessionId} is corrupt or unsupported: ${problem} (line ${lineNumber})`,
    );
  }
}

function trimNuls(line: RecordBytes): RecordBytes {
  const { source } = line;
  let { from, to } = line;
  while (from < to && source[from] === NUL) from += 1;
  while (to > from && source[to - 1] === NUL) to -= 1;
  return from === line.from && to === line.to ? line : { source, from, to };
}

function lengthOf({ from, to }: RecordBytes): number {
  return to - from;
}

/** True when the fragment is the cut-off beginning of this record, whose loss costs nothing (B101). */
function isCopyOf({ bytes, skipped }: Fragment, record: RecordBytes, seq: number): boolean {
  if (skipped.seq === seq) return true;
  const byteLength = lengthOf(bytes);
  if (lengthOf(record) < byteLength) return false;
  return isSame(bytes, { ...record, to: record.from + byteLength });
}

/** True when one line is the other, or the other behind a piece of itself (B101). */
function endsAlike(earlier: RecordBytes, later: RecordBytes): boolean {
  const byteLength = Math.min(lengthOf(earlier), lengthOf(later));
  const endOf = (record: RecordBytes) => ({ ...record, from: record.to - byteLength });
  return isSame(endOf(earlier), endOf(later));
}

function isSame(one: RecordBytes, other: RecordBytes): boolean {
  return one.source.compare(other.source, other.from, other.to, one.from, one.to) === 0;
}
