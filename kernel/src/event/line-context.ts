import {
  EventEnvelope,
  type EventPayload,
  type RunId,
  type SessionId,
  type StoredEvent,
  type Usage,
} from "@cookie-agent/sdk/protocol";
import type * as z from "zod";

/** A line as it stands in the log: an envelope that may leave out what its reader knows (S 2.1). */
export const LogLine = EventEnvelope.partial({ session_id: true, run_id: true, timestamp: true });
export type LogLine = z.infer<typeof LogLine>;

/** What a reader of a log knows from the lines before, so that a line need not say it again (S 2.1). */
export interface LineContext {
  /** Null before the first line. */
  readonly timestamp: string | null;
  /** The run that a line without one belongs to; null for none. */
  readonly runId: RunId | null;
  /** The turn committed last. */
  readonly turn: { readonly seq: number; readonly usage: Usage } | null;
}

export const FIRST_LINE: LineContext = { timestamp: null, runId: null, turn: null };

const RUN_ENDS: ReadonlySet<string> = new Set<EventPayload["type"]>([
  "run_completed",
  "run_failed",
  "run_cancelled",
  "run_interrupted",
]);
/** Say their run whatever came before, so that a damaged line costs no later turn its run. */
const ANCHORS: ReadonlySet<string> = new Set<EventPayload["type"]>([
  "run_started",
  "model_attempt_started",
]);

/** What is known behind a line. */
export function followLine(
  context: LineContext,
  { run_id: runId, timestamp, payload }: Pick<StoredEvent, "run_id" | "timestamp" | "payload">,
): LineContext {
  const nextRun = RUN_ENDS.has(payload.type) ? null : runId;
  if (payload.type === "model_turn_committed") {
    const turn = { seq: payload.model_turn_seq, usage: payload.turn.usage };
    return { timestamp, runId: nextRun, turn };
  }
  // Most lines of a block leave the reader as they found him.
  if (timestamp === context.timestamp && nextRun === context.runId) return context;
  return { timestamp, runId: nextRun, turn: context.turn };
}

/** The line without what its reader knows; `payload` is the one to write. */
export function shortenLine(event: StoredEvent, payload: object, context: LineContext): object {
  const { session_id, run_id, seq, timestamp } = event;
  const { type } = event.payload;
  return {
    // The beginning says whose log it is.
    ...(seq === 1 && { session_id }),
    ...((run_id !== context.runId || ANCHORS.has(type)) && { run_id }),
    seq,
    ...(timestamp !== context.timestamp && { timestamp }),
    payload,
  };
}

/** Adds what a line leaves out; null when that is nowhere said. */
export function completeLine(
  line: LogLine,
  sessionId: SessionId,
  context: LineContext,
): EventEnvelope | null {
  const { seq, payload } = line;
  const timestamp = line.timestamp ?? context.timestamp;
  if (timestamp === null || (line.session_id === undefined && seq === 1)) return null;
  if (payload.type === "model_usage_recorded" && payload["usage"] === undefined) {
    const { turn } = context;
    payload["usage"] = turn?.seq === payload["model_turn_seq"] ? { ...turn?.usage } : {};
  }
  const session_id = line.session_id ?? sessionId;
  const run_id = line.run_id === undefined ? context.runId : line.run_id;
  const envelope = { session_id, run_id, seq, timestamp, payload };
  const { engine_version, origin } = line;
  if (engine_version === undefined && origin === undefined) return envelope;
  return { ...line, ...envelope };
}

/** True when the turn has said this usage already. */
export function isKnownUsage({ turn }: LineContext, turnSeq: number, usage: Usage): boolean {
  if (turn?.seq !== turnSeq) return false;
  const known = new Map<string, unknown>(Object.entries(turn.usage));
  return Object.entries(usage).every(([name, count]) => known.get(name) === count);
}
