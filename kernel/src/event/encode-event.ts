import {
  CookieError,
  EVENT_PAYLOADS,
  type EventPayload,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import type * as z from "zod";
import type { EventDraft } from "./event-draft.ts";
import { followLine, type LineContext, shortenLine } from "./line-context.ts";
import { describeIssues } from "./parse-record.ts";
import { shortenPayload } from "./shorten-payload.ts";
import { MAX_RECORD_BYTES } from "./split-records.ts";

/** An event and the line that records it. */
export interface EncodedEvent {
  readonly event: StoredEvent;
  /** What its reader knows from the lines before. */
  readonly before: LineContext;
  readonly bytes: Buffer;
}

/** The payload with exactly the fields of its schema; `engine` when it does not fit (S-048). */
export function validateDraft({ payload, runId }: EventDraft): EventDraft {
  const schema: z.ZodType<EventPayload> = EVENT_PAYLOADS[payload.type];
  const parsed = schema.safeParse(payload);
  if (parsed.success) return { payload: parsed.data, runId };
  throw new CookieError(
    "engine",
    `the event ${payload.type} cannot be appended: ${describeIssues(parsed.error)}`,
  );
}

/** One physical line, newline included, whatever text the event holds (B100). */
export function encodeEvent(event: StoredEvent, before: LineContext): Buffer {
  const payload = shortenPayload(event.payload, before);
  const line = Buffer.from(`${JSON.stringify(shortenLine(event, payload, before))}\n`);
  if (line.byteLength > MAX_RECORD_BYTES) {
    throw new CookieError(
      "resource_limit",
      `the event ${event.payload.type} is too large to record: ${line.byteLength} bytes`,
    );
  }
  return line;
}

/** The lines of events that follow each other. */
export function encodeEvents(events: readonly StoredEvent[], before: LineContext): EncodedEvent[] {
  let context = before;
  return events.map((event) => {
    const line = { event, before: context, bytes: encodeEvent(event, context) };
    context = followLine(context, event);
    return line;
  });
}

export function joinLines(lines: readonly EncodedEvent[]): Buffer {
  const [only] = lines;
  if (lines.length === 1 && only !== undefined) return only.bytes;
  return Buffer.concat(lines.map(({ bytes }) => bytes));
}
