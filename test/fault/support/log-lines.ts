import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { CookieProcess } from "../../support/run-cookie.ts";
import { findLogs, type LoggedEvent } from "../../support/session-log.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { waitUntil } from "./processes.ts";

export type LogPlace = Pick<TempProject, "stateDir">;

/** The only session log, or undefined as long as none is published. */
export async function onlyLog(place: LogPlace): Promise<string | undefined> {
  const logs = (await findLogs(place)).filter((log) => !basename(dirname(log)).startsWith("."));
  if (logs.length > 1) throw new Error(`expected one session log, found ${logs.length}`);
  return logs[0];
}

/** The id of the session that a log belongs to. */
export function sessionOf(log: string): string {
  return basename(dirname(log));
}

/** What of a log ends in a newline. */
export function completeBytes(log: string): Buffer {
  const bytes = readFileSync(log);
  return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
}

export function eventsIn(bytes: Buffer): LoggedEvent[] {
  const lines = bytes.toString("utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as LoggedEvent);
}

export function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) count += 1;
  return count;
}

/** Waits until the log of a run has so many lines, or the run has ended; yields the log. */
export async function whenLines(
  place: LogPlace,
  count: number,
  { child }: CookieProcess,
): Promise<string> {
  let log: string | undefined;
  await waitUntil(async () => {
    log ??= await onlyLog(place);
    if (log !== undefined && countLines(readFileSync(log)) >= count) return true;
    return child.exitCode !== null && log !== undefined;
  }, `the log has ${count} lines`);
  if (log === undefined) throw new Error("there is no log");
  return log;
}

export interface OpenEnds {
  readonly runs: string[];
  readonly calls: string[];
}

/** Runs and calls that have no terminal event, and those that have more than one. */
export function openEnds(events: readonly LoggedEvent[]): OpenEnds {
  const runs = new Map<string, number>();
  const calls = new Map<string, number>();
  const add = (counts: Map<string, number>, id: string, by: number) =>
    counts.set(id, (counts.get(id) ?? 0) + by);
  for (const { payload, run_id: runId } of events) {
    switch (payload.type) {
      case "run_started":
        add(runs, String(runId), 1);
        break;
      case "run_completed":
      case "run_failed":
      case "run_cancelled":
      case "run_interrupted":
        add(runs, String(runId), -1);
        break;
      case "tool_call_started":
        add(calls, payload.tool_call_id, 1);
        break;
      case "tool_call_terminated":
        add(calls, payload.tool_call_id, -1);
        break;
      default:
        break;
    }
  }
  const uneven = (counts: Map<string, number>) =>
    [...counts].filter(([, count]) => count !== 0).map(([id]) => id);
  return { runs: uneven(runs), calls: uneven(calls) };
}

/** Questions to internal agents that have no terminal event, by invocation. */
export function openQuestions(events: readonly LoggedEvent[]): string[] {
  const open = new Set<string>();
  for (const { payload } of events) {
    if (payload.type === "internal_agent_started") open.add(payload.invocation_id);
    else if (/^internal_agent_(completed|failed|cancelled|interrupted)$/.test(payload.type)) {
      if ("invocation_id" in payload) open.delete(payload.invocation_id as string);
    }
  }
  return [...open];
}
