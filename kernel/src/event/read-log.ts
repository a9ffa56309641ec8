import {
  CookieError,
  type SessionId,
  type SkippedEvent,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { parseRecord } from "./parse-record.ts";
import { type RecordLine, RecordSplitter } from "./split-records.ts";

/** What reading a log yields, in file order; `end` is always the last. */
export type LogItem =
  | {
      readonly kind: "event";
      readonly event: StoredEvent;
      readonly startByte: number;
      readonly endByte: number;
      readonly degraded: readonly string[];
    }
  | { readonly kind: "skipped"; readonly skipped: SkippedEvent }
  | {
      readonly kind: "end";
      /** Where an owner truncates: the end of the last line worth keeping (S-056). */
      readonly completeByte: number;
      /** Above every sequence number read or skipped (S-058). */
      readonly nextSeq: number;
    };

export interface ReadFrom {
  /** Where a record begins; 0 reads the whole log and demands its beginning. */
  readonly startByte: number;
  /** The sequence number before that record. */
  readonly lastSeq: number;
}

const WHOLE_LOG: ReadFrom = { startByte: 0, lastSeq: 0 };
const NUL = 0x00;
/** How far ahead a broken line may claim to be and still raise the next sequence number. */
const MAX_CLAIMED_LEAD = 1_000_000;

/**
 * Reads as much of a log as can be read (S 2.5). Damage costs the damaged records only and is reported;
 * it rejects with `storage_failed` when the log has no readable beginning or its order is broken.
 */
export async function* readLog(
  chunks: AsyncIterable<Uint8Array>,
  sessionId: SessionId,
  from: ReadFrom = WHOLE_LOG,
): AsyncGenerator<LogItem, void, void> {
  const splitter = new RecordSplitter(from.startByte);
  const reader = new LogReader(sessionId, from);
  for await (const chunk of chunks) {
    for (const line of splitter.push(chunk)) yield* reader.read(line);
  }
  yield* reader.finish(splitter.startByte);
}

/** A broken line that is reported only once it is known not to be a piece of what follows. */
interface Fragment {
  readonly bytes: Uint8Array;
  readonly startByte: number;
  readonly skipped: SkippedEvent;
  blankFollows: boolean;
}

const NO_BEGINNING = "it does not begin with a readable session_created";

class LogReader {
  readonly #sessionId: SessionId;
  #lineNumber = 0;
  #lastSeq: number;
  #lastLine: Uint8Array | undefined;
  #highestSkipped = 0;
  #expectedSeq: number;
  #begun: boolean;
  #fragment: Fragment | undefined;

  constructor(sessionId: SessionId, from: ReadFrom) {
    this.#sessionId = sessionId;
    this.#begun = from.startByte > 0;
    this.#lastSeq = from.lastSeq;
    this.#expectedSeq = from.lastSeq + 1;
  }

  *read(line: RecordLine): Generator<LogItem> {
    this.#lineNumber += 1;
    if (line.bytes === null) {
      yield* this.#flushFragment();
      yield* this.#skip(undefined, `the line at byte ${line.startByte} is too long`);
      return;
    }
    const bytes = trimNuls(line.bytes);
    const nulCount = line.bytes.byteLength - bytes.byteLength;
    if (nulCount > 0) {
      yield* this.#flushFragment();
      yield* this.#skip(undefined, `${nulCount} NUL bytes in the line at byte ${line.startByte}`);
    }
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
    if (text.trim() === "") {
      if (this.#fragment !== undefined) this.#fragment.blankFollows = true;
      return;
    }
    yield* this.#readRecord(line, bytes, text);
  }

  *finish(completeByte: number): Generator<LogItem> {
    // A broken line and a blank one at the very end are what a torn write followed by a newline leaves (B110).
    const torn = this.#fragment?.blankFollows ? this.#fragment.startByte : undefined;
    if (torn === undefined) yield* this.#flushFragment();
    if (!this.#begun) throw this.#corrupt(NO_BEGINNING, 1);
    yield {
      kind: "end",
      completeByte: torn ?? completeByte,
      nextSeq: Math.max(this.#lastSeq, this.#highestSkipped) + 1,
    };
  }

  *#readRecord(line: RecordLine, bytes: Uint8Array, text: string): Generator<LogItem> {
    const record = parseRecord(text, this.#sessionId);
    if (record.kind === "unreadable") {
      yield* this.#flushFragment();
      if (!record.fragment) {
        yield* this.#skip(record.seq, record.reason);
        return;
      }
      const reason = `${record.reason} (line at byte ${line.startByte})`;
      const skipped = { ...this.#place(this.#credible(record.seq)), reason };
      this.#fragment = { bytes, startByte: line.startByte, skipped, blankFollows: false };
      return;
    }
    const { event, degraded } = record;
    if (this.#fragment !== undefined && isCopyOf(this.#fragment, bytes, event.seq))
      this.#fragment = undefined;
    yield* this.#flushFragment();
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
    if (event.seq > this.#expectedSeq) yield this.#missing(this.#expectedSeq, event.seq - 1);
    this.#lastSeq = event.seq;
    this.#expectedSeq = event.seq + 1;
    this.#lastLine = bytes;
    yield { kind: "event", event, startByte: line.startByte, endByte: line.endByte, degraded };
  }

  #checkBeginning(event: StoredEvent): void {
    if (this.#begun) return;
    if (event.seq !== 1 || event.payload.type !== "session_created") {
      throw this.#corrupt(NO_BEGINNING, 1);
    }
    this.#begun = true;
  }

  *#flushFragment(): Generator<LogItem> {
    const fragment = this.#fragment;
    if (fragment === undefined) return;
    this.#fragment = undefined;
    const { seq } = fragment.skipped;
    if (seq !== undefined) this.#highestSkipped = Math.max(this.#highestSkipped, seq);
    // A torn number may name any event: it counts as present only where one is due.
    if (seq === this.#expectedSeq) this.#expectedSeq += 1;
    yield { kind: "skipped", skipped: fragment.skipped };
  }

  *#skip(statedSeq: number | undefined, reason: string): Generator<LogItem> {
    const seq = this.#credible(statedSeq);
    if (seq !== undefined) {
      if (seq > this.#expectedSeq) yield this.#missing(this.#expectedSeq, seq - 1);
      this.#expectedSeq = Math.max(this.#expectedSeq, seq + 1);
      this.#highestSkipped = Math.max(this.#highestSkipped, seq);
    }
    yield { kind: "skipped", skipped: { ...this.#place(seq), reason } };
  }

  #place(seq: number | undefined): { seq: number } | { line: number } {
    return seq === undefined ? { line: this.#lineNumber } : { seq };
  }

  #missing(firstSeq: number, lastSeq: number): LogItem {
    const reason =
      firstSeq === lastSeq
        ? `event ${firstSeq} is missing`
        : `events ${firstSeq} to ${lastSeq} are missing`;
    return { kind: "skipped", skipped: { seq: firstSeq, reason } };
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

function trimNuls(bytes: Uint8Array): Uint8Array {
  let start = 0;
  let end = bytes.byteLength;
  while (start < end && bytes[start] === NUL) start += 1;
  while (end > start && bytes[end - 1] === NUL) end -= 1;
  return bytes.subarray(start, end);
}

/** True when the fragment is the cut-off beginning of this record, whose loss costs nothing (B101). */
function isCopyOf(fragment: Fragment, record: Uint8Array, seq: number): boolean {
  return (
    fragment.skipped.seq === seq ||
    (record.byteLength >= fragment.bytes.byteLength &&
      Buffer.compare(record.subarray(0, fragment.bytes.byteLength), fragment.bytes) === 0)
  );
}

/** True when one line is the other, or the other behind a piece of itself (B101). */
function endsAlike(earlier: Uint8Array, later: Uint8Array): boolean {
  const [long, short] =
    earlier.byteLength >= later.byteLength ? [earlier, later] : [later, earlier];
  return Buffer.compare(long.subarray(long.byteLength - short.byteLength), short) === 0;
}
