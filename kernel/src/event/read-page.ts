import { type EventEnvelope, MAX_FRAME_BYTES, type StoredEvent } from "@cookie-agent/sdk/protocol";

/** Bytes of one frame that are not events: the rest of the answer. */
const ANSWER_BYTES = 64 * 1024;

export interface SizedEvent {
  readonly event: StoredEvent;
  readonly byteLength: number;
}

/** The events after `cursor` that fit one answer: at most `limit` and 4 MiB, but at least one (D-064). */
export async function readPage(
  stored: AsyncIterable<SizedEvent>,
  { cursor, limit = Number.POSITIVE_INFINITY }: { cursor: number; limit?: number },
): Promise<{ events: EventEnvelope[]; more: boolean }> {
  const events: EventEnvelope[] = [];
  let pageBytes = 0;
  for await (const { event, byteLength } of stored) {
    if (event.seq <= cursor) continue;
    pageBytes += byteLength;
    const isFull = events.length >= limit || pageBytes > MAX_FRAME_BYTES - ANSWER_BYTES;
    if (isFull && events.length > 0) return { events, more: true };
    events.push(event);
  }
  return { events, more: false };
}
