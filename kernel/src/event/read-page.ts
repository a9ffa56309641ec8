import {
  type EventEnvelope,
  MAX_FRAME_BYTES,
  type SessionId,
  type StoredEvent,
  utf8Length,
} from "@cookie-agent/sdk/protocol";
import { readLog } from "./read-log.ts";
import type { SeqIndex } from "./seq-index.ts";

/** Bytes of one frame that are not events: the rest of the answer. */
const ANSWER_BYTES = 64 * 1024;

/** The events after `cursor` that fit one answer: at most `limit` and 4 MiB, but at least one (D-064). */
export async function readPage(
  stored: Iterable<StoredEvent> | AsyncIterable<StoredEvent>,
  { cursor, limit = Number.POSITIVE_INFINITY }: { cursor: number; limit?: number },
): Promise<{ events: EventEnvelope[]; more: boolean }> {
  const events: EventEnvelope[] = [];
  let pageBytes = 0;
  for await (const event of stored) {
    if (event.seq <= cursor) continue;
    // Lines leave out what answers say.
    pageBytes += utf8Length(JSON.stringify(event)) + 1;
    const isFull = events.length >= limit || pageBytes > MAX_FRAME_BYTES - ANSWER_BYTES;
    if (isFull && events.length > 0) return { events, more: true };
    events.push(event);
  }
  return { events, more: false };
}

/** The events of a log up to `tipSeq`, from a place at or before the first after `cursor`. */
export async function* readStored(
  log: {
    readonly sessionId: SessionId;
    readonly index: SeqIndex;
    readonly tipSeq: number;
    read(fromByte: number): AsyncIterable<Uint8Array>;
  },
  cursor: number,
): AsyncGenerator<StoredEvent> {
  const place = log.index.placeBefore(cursor);
  if (place === undefined) return;
  const { startByte, before } = place;
  const from = { startByte, lastSeq: place.seq - 1, context: before };
  for await (const batch of readLog(log.read(startByte), log.sessionId, from)) {
    for (const item of batch) {
      if (item.kind === "event" && item.event.seq <= log.tipSeq) yield item.event;
    }
  }
}
