import {
  EVENT_PAYLOADS,
  EventEnvelope,
  type EventPayload,
  type EventType,
  type SessionId,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { type Acceptor, acceptorOf } from "../support/accept-plain.ts";
import { safeText } from "../support/safe-text.ts";
import { completeLine, type LineContext, LogLine } from "./line-context.ts";
import { repairPayload } from "./repair-payload.ts";

/** What one line of a log holds (S 2.5). */
export type ParsedRecord =
  | { kind: "event"; event: StoredEvent; degraded: readonly string[] }
  /** `seq` where the line says it credibly; `fragment` when it is not whole JSON. */
  | {
      kind: "unreadable";
      seq: number | undefined;
      reason: string;
      fragment: boolean;
      /** What is known behind a line whose envelope could be read. */
      after?: LineContext;
    };

const NONE: readonly string[] = [];

type PlainEvent = EventEnvelope & StoredEvent;

/** Judges one line without its newline; never throws. */
export function parseRecord(text: string, sessionId: SessionId, before: LineContext): ParsedRecord {
  const json = readJson(text);
  if (json === undefined) {
    const seq = statedSeq(text);
    return { kind: "unreadable", seq, reason: "the line is not complete JSON", fragment: true };
  }
  return parseEnvelope(json, sessionId, before);
}

function parseEnvelope(json: unknown, sessionId: SessionId, before: LineContext): ParsedRecord {
  const line = isPlainLine(json) ? { data: json } : LogLine.safeParse(json);
  if (line.data === undefined) {
    return unreadable(seqOf(json), `unreadable envelope: ${describeIssues(line.error)}`);
  }
  const { seq } = line.data;
  const envelope = completeLine(line.data, sessionId, before);
  if (envelope === null) return unreadable(seq, "the line does not say its session or its time");
  if (envelope.session_id !== sessionId) {
    return unreadable(seq, "the event belongs to another session");
  }
  return parsePayload(envelope, before);
}

function parsePayload(envelope: EventEnvelope, before: LineContext): ParsedRecord {
  const { seq, payload } = envelope;
  const kind = kindOf(payload.type);
  if (kind === undefined) {
    const { run_id: runId, timestamp } = envelope;
    return {
      ...unreadable(seq, `unknown event type ${payload.type}`),
      after: { ...before, runId, timestamp },
    };
  }
  if (isPlainEvent(envelope, kind)) return { kind: "event", event: envelope, degraded: NONE };
  const { schema } = kind;
  const parsed = schema.safeParse(payload);
  if (parsed.success) {
    return { kind: "event", event: { ...envelope, payload: parsed.data }, degraded: NONE };
  }
  const repaired = repairPayload(schema, payload, parsed.error);
  if (repaired === undefined) {
    const { run_id: runId, timestamp } = envelope;
    return {
      ...unreadable(seq, `unreadable ${payload.type}: ${describeIssues(parsed.error)}`),
      after: { ...before, runId, timestamp },
    };
  }
  return {
    kind: "event",
    event: { ...envelope, payload: repaired.payload },
    degraded: repaired.degraded,
  };
}

const isPlainLine = acceptorOf(LogLine);

function isPlainEvent(envelope: EventEnvelope, kind: EventKind): envelope is PlainEvent {
  return kind.isPlain(envelope.payload);
}

interface EventKind {
  readonly schema: z.ZodType<EventPayload>;
  readonly isPlain: Acceptor<EventPayload>;
}

/** The types that were met so far. */
const kinds = new Map<string, EventKind>();

function kindOf(type: string): EventKind | undefined {
  const known = kinds.get(type);
  if (known !== undefined || !isEventType(type)) return known;
  const schema: z.ZodType<EventPayload> = EVENT_PAYLOADS[type];
  const kind = { schema, isPlain: acceptorOf(schema) };
  kinds.set(type, kind);
  return kind;
}

/** Names the places that were refused, never the values that stood there. */
export function describeIssues(error: z.ZodError): string {
  const places = error.issues.slice(0, 3).map((issue) => {
    const place = issue.path.map(String).join(".");
    const keys = issue.code === "unrecognized_keys" ? ` ${issue.keys.slice(0, 3).join(", ")}` : "";
    return `${place === "" ? "object" : place}: ${issue.code}${keys}`;
  });
  return safeText(places.join("; "), 512);
}

function unreadable(seq: number | undefined, reason: string) {
  const kind = "unreadable" as const;
  return { kind, seq, reason: safeText(reason, 1024), fragment: false };
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_PAYLOADS, type);
}

/** The object that a line holds, also behind a cut-off piece of itself; undefined when it holds none. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  const parsed = z.record(z.string(), z.unknown()).safeParse(readJson(text));
  return parsed.success ? parsed.data : undefined;
}

function readJson(text: string): unknown {
  const json = parseJson(text);
  return json === undefined ? recoverCopy(text) : json;
}

/** Undefined, which is no JSON, when the text is none. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const RECORD_HEAD = /\{"(?:session_id|run_id|seq|timestamp|origin|engine_version)":/g;
/** Heads tried in one broken line, so that a hostile line costs no more than a few parses. */
const MAX_HEADS = 16;

/** A record that follows the cut-off beginning of a record on the same line (B101). */
function recoverCopy(text: string): unknown {
  let tried = 0;
  for (const head of text.matchAll(RECORD_HEAD)) {
    if (head.index === 0) continue;
    tried += 1;
    if (tried > MAX_HEADS) return undefined;
    const json = parseJson(text.slice(head.index));
    if (LogLine.safeParse(json).success) return json;
  }
  return undefined;
}

/** The sequence number in the head of a broken line; one inside the payload does not count. */
function statedSeq(text: string): number | undefined {
  const head = text.slice(0, 512);
  const payloadAt = head.indexOf('"payload"');
  const match = /"seq":([1-9]\d{0,15}),/.exec(payloadAt < 0 ? head : head.slice(0, payloadAt));
  return match ? seqOf({ seq: Number(match[1]) }) : undefined;
}

const Stated = z.looseObject({ seq: EventEnvelope.shape.seq });

function seqOf(json: unknown): number | undefined {
  const stated = Stated.safeParse(json);
  return stated.success ? stated.data.seq : undefined;
}
