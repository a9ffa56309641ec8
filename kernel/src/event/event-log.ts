import {
  CookieError,
  type EventEnvelope,
  type EventType,
  type SessionId,
  type SkippedEvent,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { sessionForeign } from "../store/session-foreign.ts";
import type {
  LogFile,
  SessionLocation,
  SessionStore,
  StoredMetadata,
  TreeLease,
} from "../store/session-store.ts";
import { BranchFold, type LogObserver } from "./branch-fold.ts";
import { type EncodedEvent, encodeEvents, joinLines, validateDraft } from "./encode-event.ts";
import type { EventDraft } from "./event-draft.ts";
import { EventStamper } from "./event-stamper.ts";
import type { GroupCommit } from "./group-commit.ts";
import { FIRST_LINE, followLine } from "./line-context.ts";
import { LogWriter } from "./log-writer.ts";
import { readPage, readStored } from "./read-page.ts";
import { SeqIndex } from "./seq-index.ts";
import { SkippedEvents } from "./skipped-events.ts";
import { storageFailed } from "./storage-failed.ts";
import { isStreamEvent, StreamBuffer } from "./stream-buffer.ts";
import { SubscriberHub, type Subscription } from "./subscriber-hub.ts";

/** The first work of a session: what puts it on disk (S-023). */
const PUBLISHING_EVENTS: ReadonlySet<string> = new Set<EventType>([
  "user_input_submitted",
  "user_input_admitted",
]);
/** Events an unpublished session may gather in memory. */
const MAX_BUFFERED_EVENTS = 4096;

export interface EventLogOptions {
  readonly sessionId: SessionId;
  readonly rootId: SessionId;
  readonly store: SessionStore;
  /** Shared by every session of the process. */
  readonly sync: GroupCommit;
  readonly observer: LogObserver;
  /** Told of each event of the log once, in seq order, whatever a revert does. */
  onEvent?(event: StoredEvent): void;
  /** Makes durable what the next events may refer to; they are not written before (S 4.1). */
  syncReferences?(): Promise<void>;
  /** The session as lists show it now; asked for at publication. */
  metadata(): StoredMetadata;
  /** Told of each new event after subscribers, and only once it is on disk. */
  onRecorded?(event: StoredEvent): void;
  readonly now?: () => Date;
}

export interface OpenEventLogOptions extends EventLogOptions {
  readonly location: SessionLocation;
  /** Without it the log is a read-only snapshot. */
  readonly lease?: TreeLease;
}

export interface EventPage {
  readonly events: EventEnvelope[];
  /** The page ended before the last stored event; there is then no tail. */
  readonly more: boolean;
  readonly tail?: Subscription<StoredEvent>;
}

/**
 * The record of one session and its only writer (S 2). Every operation waits for the one before it, so events are
 * checked, written, folded and published in one order.
 */
export class EventLog {
  readonly sessionId: SessionId;
  readonly #options: EventLogOptions;
  readonly #fold: BranchFold;
  readonly #hub = new SubscriberHub<StoredEvent>();
  readonly #index = new SeqIndex();
  readonly #stamper: EventStamper;
  readonly #streams: StreamBuffer;
  readonly #skipped = new SkippedEvents();
  /** Events of a session that is not on disk yet. */
  #buffer: StoredEvent[] = [];
  #writer: LogWriter | undefined;
  #lease: TreeLease | undefined;
  #tipSeq = 0;
  /** What a reader knows behind the last line. */
  #context = FIRST_LINE;
  #operations: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(options: EventLogOptions) {
    this.#options = options;
    this.sessionId = options.sessionId;
    this.#fold = new BranchFold(options.sessionId, options.observer);
    this.#stamper = new EventStamper(options.sessionId, options.now);
    this.#streams = new StreamBuffer(() => {
      // The next append meets the same failure and reports it to someone who can act.
      this.#enqueue(() => this.#flushStreams()).catch(() => undefined);
    });
  }

  /** A session in memory; its first work publishes it (S-023). The first event must be `session_created`. */
  static create(options: EventLogOptions): EventLog {
    return new EventLog(options);
  }

  /**
   * Opens a published session and folds its readable events into the observer. With a lease the torn tail is cut
   * off (S-056); without one nothing is changed. Rejects with `storage_failed` when the log cannot be read.
   */
  static async open(options: OpenEventLogOptions): Promise<EventLog> {
    const log = new EventLog(options);
    const file = await options.store.open(options.location, options.lease);
    try {
      await log.#load(file, options);
    } catch (error) {
      await file.close();
      throw storageFailed(options.sessionId, error);
    }
    return log;
  }

  /** The highest sequence number taken, readable or not. */
  get tipSeq(): number {
    return this.#tipSeq;
  }

  get published(): boolean {
    return this.#writer !== undefined;
  }

  /** True for an unpublished session, and while the tree is held here (S-084). */
  get writable(): boolean {
    return !this.#closed && (this.#writer === undefined || this.#lease?.held === true);
  }

  get skippedEvents(): readonly SkippedEvent[] {
    return this.#skipped.list;
  }

  /**
   * Records events of the commit class as one block, all or none: checked, written, durable, folded, published
   * (S-046). Rejects with `engine` for an event that must not follow (S-048), with `storage_failed` when it cannot
   * be made durable (S-047); the next append then starts from the last durable line.
   */
  append(drafts: readonly EventDraft[]): Promise<StoredEvent[]> {
    return this.#enqueue(() => this.#append(drafts));
  }

  /**
   * Records an event of the stream class: gathered, then written and published without a sync, at the latest
   * before the next `append` (S-248). Throws `engine` when it must not follow.
   */
  appendStream(draft: EventDraft): void {
    this.#requireWritable();
    if (!isStreamEvent(draft.payload)) throw misplaced(draft, "it belongs to the commit class");
    const valid = validateDraft(draft);
    this.#fold.checks.check(valid, this.#tipSeq + 1);
    this.#streams.add(valid);
  }

  /**
   * Lets the events behind `throughSeq` no longer count and folds anew; none is removed (S-229). Rejects with
   * `invalid_sequence` for an event that there is not; a log that cannot be read again is closed.
   */
  revert(throughSeq: number): Promise<StoredEvent> {
    return this.#enqueue(() => this.#revert(throughSeq));
  }

  /** Puts an unpublished session on disk as it stands (S 1.4); does nothing for a published one. */
  publish(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#writer === undefined) await this.#publish([]);
    });
  }

  /**
   * Stored events after `cursor`, at most `limit` and 4 MiB of them, and with the page that reaches the end the
   * live tail: none is lost or doubled between the two (D-060, D-064). A read-only log has no tail.
   */
  subscribe(request: { cursor: number; limit?: number; live: boolean }): Promise<EventPage> {
    return this.#enqueue(async () => {
      const page = await this.#readPage(request);
      if (page.more || !request.live || !this.writable) return page;
      return { ...page, tail: this.#hub.subscribe(this.#tipSeq) };
    });
  }

  /**
   * Takes a view of what is folded when nothing is under way: all of the file is then in it, and nothing else.
   * @param take Gets the length of the file; null while it has none, or cannot be trusted after a failed write.
   */
  atRest<T>(take: (logBytes: number | null) => T): Promise<T> {
    return this.#enqueue(async () => {
      await this.#flushStreams().catch(() => undefined);
      const writer = this.#writer;
      return take(writer === undefined || writer.failed ? null : writer.byteLength);
    });
  }

  /** Cuts every live tail with a gap: its readers have to ask again (S 3.9). */
  dropSubscribers(): void {
    this.#hub.close();
  }

  /** Writes what is gathered, ends every tail and closes the file; an unpublished session is forgotten (S-027). */
  async close(): Promise<void> {
    await this.#enqueue(async () => {
      await this.#flushStreams().catch(() => undefined);
      this.#closed = true;
    }).catch(() => undefined);
    this.#streams.take();
    this.#hub.close();
    this.#buffer = [];
    await this.#writer?.close();
  }

  #enqueue<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#operations.then(() => {
      if (this.#closed) throw closedError(this.sessionId);
      return operation();
    });
    this.#operations = result.catch(() => undefined);
    return result;
  }

  async #load(file: LogFile, options: OpenEventLogOptions): Promise<void> {
    const end = await this.#fold.read(() => file.read(), {
      place: ({ event, startByte, before }) => {
        this.#stamper.fold(event);
        this.#index.note({ seq: event.seq, startByte, before });
        this.#options.onEvent?.(event);
      },
      skip: (skipped) => this.#skipped.add(skipped),
    });
    this.#tipSeq = end.nextSeq - 1;
    this.#context = end.context;
    if (options.lease !== undefined && end.completeByte < file.byteLength) {
      await file.truncate(end.completeByte);
      await file.sync();
    }
    this.#adopt(file, options.location, options.lease);
  }

  #adopt(file: LogFile, location: SessionLocation, lease: TreeLease | undefined): void {
    const { sync, store } = this.#options;
    this.#lease = lease;
    this.#writer = new LogWriter({
      sessionId: this.sessionId,
      file,
      sync,
      reopen: () => store.open(location, lease),
    });
  }

  async #append(drafts: readonly EventDraft[]): Promise<StoredEvent[]> {
    this.#requireWritable();
    if (drafts.length === 0) return [];
    await this.#writer?.ensureWhole();
    await this.#syncReferences();
    try {
      const admitted = this.#admit(drafts);
      const events = await this.#record(admitted);
      this.#fold.checks.keep();
      for (const event of events) this.#announce(event);
      return events;
    } finally {
      this.#fold.checks.undo();
    }
  }

  async #revert(throughSeq: number): Promise<StoredEvent> {
    this.#requireWritable();
    requireSeq(throughSeq, this.#tipSeq);
    await this.#writer?.ensureWhole();
    const payload = { type: "session_reverted" as const, through_seq: throughSeq };
    let marker: StoredEvent | undefined;
    try {
      [marker] = await this.#record(this.#admit([{ payload, runId: null }]));
    } finally {
      this.#fold.checks.undo();
    }
    if (marker === undefined) throw new CookieError("engine", "the revert was not recorded");
    const writer = this.#writer;
    const log = writer === undefined ? this.#buffer : () => writer.read(0);
    try {
      await this.#fold.revert(throughSeq, marker.seq, log);
    } catch (error) {
      // What is projected would no longer be what the log says.
      this.#closed = true;
      this.#hub.close();
      throw storageFailed(this.sessionId, error);
    }
    this.#tell(marker);
    return marker;
  }

  /** Judges each draft as it would follow the ones before it. */
  #admit(drafts: readonly EventDraft[]): EventDraft[] {
    const firstSeq = this.#tipSeq + this.#streams.size + 1;
    return drafts.map((draft, index) => {
      if (isStreamEvent(draft.payload)) throw misplaced(draft, "it belongs to the stream class");
      const valid = validateDraft(draft);
      this.#fold.checks.admit(valid, firstSeq + index);
      return valid;
    });
  }

  /** Makes events part of the log; they are announced by the caller, once nothing can fail any more. */
  async #record(drafts: readonly EventDraft[]): Promise<StoredEvent[]> {
    if (this.#writer !== undefined) return this.#write(this.#writer, drafts);
    const events = this.#stamper.stamp(drafts, this.#tipSeq + 1);
    if (events.some((event) => PUBLISHING_EVENTS.has(event.payload.type))) {
      await this.#publish(events);
    } else {
      if (this.#buffer.length + events.length > MAX_BUFFERED_EVENTS) {
        throw new CookieError("resource_limit", "an unused session has gathered too many events");
      }
      this.#buffer.push(...events);
    }
    return events;
  }

  async #syncReferences(): Promise<void> {
    try {
      await this.#options.syncReferences?.();
    } catch (error) {
      throw storageFailed(this.sessionId, error);
    }
  }

  async #write(writer: LogWriter, drafts: readonly EventDraft[]): Promise<StoredEvent[]> {
    const startByte = writer.byteLength;
    const streamed = this.#streams.take();
    let all: EncodedEvent[];
    let block: Uint8Array;
    try {
      const events = this.#stamper.stamp([...streamed, ...drafts], this.#tipSeq + 1);
      all = encodeEvents(events, this.#context);
      block = joinLines(all);
      await writer.append(block);
    } catch (error) {
      this.#streams.giveBack(streamed);
      throw error;
    }
    const streamLines = all.slice(0, streamed.length);
    const lines = all.slice(streamed.length);
    const commitByte = this.#index.noteLines(streamLines, startByte);
    writer.keepUndurable(block.subarray(0, commitByte - startByte));
    for (const { event } of streamLines) this.#announce(event);
    if (lines.length === 0) return [];
    await writer.commit();
    this.#index.noteLines(lines, commitByte);
    return lines.map(({ event }) => event);
  }

  async #publish(events: readonly StoredEvent[]): Promise<void> {
    const { rootId, store, metadata } = this.#options;
    const { sessionId } = this;
    const lines = encodeEvents([...this.#buffer, ...events], FIRST_LINE);
    try {
      const published = await store.publish({
        sessionId,
        rootId,
        bytes: joinLines(lines),
        metadata: metadata(),
      });
      this.#adopt(published.file, { sessionId, rootId }, published.lease);
    } catch (error) {
      throw storageFailed(sessionId, error);
    }
    this.#index.noteLines(lines, 0);
    const before = this.#buffer;
    this.#buffer = [];
    for (const event of before) this.#options.onRecorded?.(event);
  }

  /** Gathered stream records, written without a sync; after a failure they wait for the next append. */
  async #flushStreams(): Promise<void> {
    if (this.#streams.size === 0 || !this.writable) return;
    if (this.#writer === undefined) {
      for (const event of await this.#record(this.#streams.take())) this.#announce(event);
    } else if (!this.#writer.failed) {
      await this.#write(this.#writer, []);
    }
  }

  /** Of an event that is on disk. A log that cannot take it in would number the next one wrongly, so it is closed. */
  #announce(event: StoredEvent): void {
    try {
      this.#fold.announce(event);
      this.#tell(event);
    } catch (cause) {
      this.#closed = true;
      this.#hub.close();
      throw new CookieError(
        "engine",
        `event ${event.seq} of session ${this.sessionId} is recorded and could not be taken in; ` +
          "open the session again",
        { cause, data: { session_id: this.sessionId } },
      );
    }
  }

  #tell(event: StoredEvent): void {
    this.#tipSeq = event.seq;
    this.#context = followLine(this.#context, event);
    this.#options.onEvent?.(event);
    this.#hub.publish(event);
    if (this.#writer !== undefined) this.#options.onRecorded?.(event);
  }

  async #readPage(request: { cursor: number; limit?: number }): Promise<EventPage> {
    const writer = this.#writer;
    if (writer === undefined) return readPage(this.#buffer, request);
    const { sessionId } = this;
    const read = (fromByte: number) => writer.read(fromByte);
    const stored = { sessionId, index: this.#index, tipSeq: this.#tipSeq, read };
    try {
      return await readPage(readStored(stored, request.cursor), request);
    } catch (error) {
      throw storageFailed(sessionId, error);
    }
  }

  #requireWritable(): void {
    if (this.#closed) throw closedError(this.sessionId);
    if (this.writable) return;
    throw sessionForeign(this.sessionId);
  }
}

/** Throws `invalid_sequence` for what is no event of a log that ends with `tipSeq`. */
export function requireSeq(seq: number, tipSeq: number): void {
  if (Number.isInteger(seq) && seq >= 1 && seq <= tipSeq) return;
  throw new CookieError(
    "invalid_sequence",
    `the session has the events 1 to ${tipSeq}, not ${seq}`,
  );
}

function closedError(sessionId: SessionId): CookieError {
  return new CookieError("shutting_down", `the event log of session ${sessionId} is closed`);
}

function misplaced(draft: EventDraft, problem: string): CookieError {
  return new CookieError(
    "engine",
    `the event ${draft.payload.type} cannot be appended: ${problem}`,
  );
}
