import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { EVENT_PAYLOADS, type EventPayload } from "@cookie-agent/sdk/protocol";
import type { TempProject } from "./temp-project.ts";

export interface LoggedEvent {
  readonly session_id: string;
  readonly run_id: string | null;
  readonly seq: number;
  readonly timestamp: string;
  readonly payload: EventPayload;
}

/** Paths of every session log below the state directory, oldest first. */
export async function findLogs(project: Pick<TempProject, "stateDir">): Promise<string[]> {
  const sessions = join(project.stateDir, "sessions");
  const names = await readdir(sessions, { recursive: true }).catch(() => []);
  return names
    .filter((name) => name.endsWith("events.jsonl"))
    .sort()
    .map((name) => join(sessions, name));
}

/** The events of the only session. */
export async function readOnlyLog(project: Pick<TempProject, "stateDir">): Promise<LoggedEvent[]> {
  const logs = await findLogs(project);
  if (logs.length !== 1 || logs[0] === undefined) {
    throw new Error(`expected one session log, found ${logs.length}`);
  }
  return readLog(logs[0]);
}

export async function readLog(file: string): Promise<LoggedEvent[]> {
  return parseLog(await readFile(file, "utf8"));
}

/** Events come as readers take them: with what a line leaves out because the lines before say it, or because it is null. */
export function parseLog(lines: string): LoggedEvent[] {
  let known: { session_id?: string; run_id: string | null; timestamp?: string } = { run_id: null };
  let usage: unknown;
  return lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const event = { ...known, ...JSON.parse(line) } as LoggedEvent;
      const { type } = event.payload;
      if (event.payload.type === "model_turn_committed") usage = event.payload.turn.usage;
      const payload =
        type === "model_usage_recorded" ? Object.assign({ usage }, event.payload) : event.payload;
      known = { ...known, ...event, ...(RUN_ENDS.has(type) && { run_id: null }) };
      const { session_id, run_id, seq, timestamp } = event;
      const parsed = EVENT_PAYLOADS[type].parse(payload) as EventPayload;
      return { session_id, run_id, seq, timestamp, payload: parsed };
    });
}

const RUN_ENDS: ReadonlySet<string> = new Set<EventPayload["type"]>([
  "run_completed",
  "run_failed",
  "run_cancelled",
  "run_interrupted",
]);

/** The payloads of one type, in order. */
export function payloadsOf<T extends EventPayload["type"]>(
  events: readonly LoggedEvent[],
  type: T,
): Extract<EventPayload, { type: T }>[] {
  return events
    .map(({ payload }) => payload)
    .filter((payload): payload is Extract<EventPayload, { type: T }> => payload.type === type);
}
