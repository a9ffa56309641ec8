import { type EventPayload, STREAM_EVENTS, utf8Length } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "./event-draft.ts";

/** How much of one stream is gathered before it is written without waiting for the time to pass. */
const FLUSH_BYTES = 4 * 1024;
const FLUSH_MS = 50;
/** Text kept while the log cannot be written; what comes on top is lost, its commit event repeats it. */
const MAX_HELD_BYTES = 1024 * 1024;

interface GatheredStream {
  readonly draft: EventDraft;
  readonly byteLength: number;
}

/** Gathers stream events: one record per type and attempt or call, due after 50 ms or 4 KiB (S-248). */
export class StreamBuffer {
  readonly #onDue: () => void;
  #streams = new Map<string, GatheredStream>();
  #byteLength = 0;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;

  /** @param onDue Told once that it is time to `take`. */
  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  /** Records that `take` would yield now. */
  get size(): number {
    return this.#streams.size;
  }

  add(draft: EventDraft): void {
    if (this.#byteLength >= MAX_HELD_BYTES) return;
    const key = streamKey(draft.payload);
    const before = this.#streams.get(key);
    const added = streamBytes(draft.payload);
    const byteLength = added + (before?.byteLength ?? 0);
    this.#byteLength += added;
    const gathered =
      before === undefined
        ? draft
        : { ...draft, payload: join(before.draft.payload, draft.payload) };
    this.#streams.set(key, { draft: gathered, byteLength });
    if (byteLength >= FLUSH_BYTES) this.#fallDue();
    else this.#timer ??= setTimeout(() => this.#fallDue(), FLUSH_MS).unref();
  }

  /** Everything gathered, in the order in which the streams began. */
  take(): EventDraft[] {
    const drafts = [...this.#streams.values()].map(({ draft }) => draft);
    this.#streams = new Map();
    this.#byteLength = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = false;
    return drafts;
  }

  /** Puts back what could not be written, before anything gathered since. */
  giveBack(drafts: readonly EventDraft[]): void {
    const since = this.take();
    for (const draft of [...drafts, ...since]) this.add(draft);
  }

  #fallDue(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#onDue();
  }
}

export function isStreamEvent(payload: EventPayload): boolean {
  return STREAM_EVENTS.has(payload.type);
}

function streamKey(payload: EventPayload): string {
  if ("attempt_id" in payload) return `${payload.type} ${payload.attempt_id}`;
  return "tool_call_id" in payload ? `${payload.type} ${payload.tool_call_id}` : payload.type;
}

function streamBytes(payload: EventPayload): number {
  if (payload.type === "text_delta" || payload.type === "reasoning_delta") {
    return utf8Length(payload.text);
  }
  return payload.type === "tool_call_progress" ? utf8Length(payload.message) : 0;
}

/** Text grows; a progress message replaces the one before it. */
function join(before: EventPayload, after: EventPayload): EventPayload {
  const isText = after.type === "text_delta" || after.type === "reasoning_delta";
  if (isText && before.type === after.type) return { ...after, text: before.text + after.text };
  return after;
}
