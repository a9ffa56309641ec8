import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  type SessionId,
  SessionList,
  SessionPermissionExplain,
  STREAM_EVENTS,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { expect } from "vitest";
import type { ModelServer } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";
import { findLogs, payloadsOf, readLog } from "../../support/session-log.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { openEnds, openQuestions, sessionOf } from "./log-lines.ts";
import { pairingProblems } from "./paired-results.ts";
import { GRANTED_COMMAND, type ScriptedSession, SUMMARY } from "./scripted-session.ts";

const CHECKPOINT = "context_checkpoint_committed";

export interface Struck {
  readonly project: TempProject;
  readonly server: ModelServer;
  readonly dataDir?: string;
  /** What was lost: with the power also what was not synced. */
  readonly lost: "process" | "power";
}

/** What a client knew of a session when a fault struck. */
export type Known = Pick<ScriptedSession, "seen" | "promised" | "forks" | "sessionId" | "grant">;

/**
 * Opens the store that a fault has left with a new kernel and compares it with what a client knew: nothing that it
 * was told is lost, nothing is half there, what was open is settled, and the next run works.
 */
export async function expectIntact(struck: Struck, known: Known): Promise<void> {
  const { seen, promised, forks, sessionId, grant } = known;
  const { project, server, dataDir } = struck;
  const logs = await findLogs({ stateDir: dataDir ?? project.stateDir });
  const log = logs.find((path) => sessionOf(path) === sessionId);
  if (log === undefined) {
    expect(promised.map(({ what }) => what)).toEqual([]);
    expect([...seen.values()].filter(({ run_id }) => run_id !== null)).toEqual([]);
  }
  const before = log === undefined ? Buffer.alloc(0) : await readFile(log);
  const complete = before.subarray(0, before.lastIndexOf(0x0a) + 1);
  const kernel = await openTestKernel({ on: { project, server }, ...(dataDir && { dataDir }) });
  try {
    const session = log === undefined ? undefined : sessionId;
    const { end, sessionId: used } = await kernel.run("Next.", { ...(session && { session }) });
    expect(end).toMatchObject({ type: "run_completed", final_text: "Done." });
    const events = await kernel.client.readEvents(used);
    expect(openEnds(events)).toEqual({ runs: [], calls: [] });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    if (session !== undefined) expectKnown(events, known, struck.lost);
    if (log !== undefined) await expectRetained(dirname(dirname(log)), events);
    expect(openQuestions(events)).toEqual([]);
    expect(pairingProblems(lastRequest(server))).toEqual([]);
    const isSummarized = events.some(({ payload: { type } }) => type === CHECKPOINT);
    expect(JSON.stringify(lastRequest(server).body).includes(SUMMARY)).toBe(isSummarized);
    await expectGrant(kernel, { used, events, grant: session === undefined ? "none" : grant });
    await expectListed(kernel, used, events);
    for (const fork of forks) {
      const copied = await kernel.client.readEvents(fork.sessionId);
      const types = (list: readonly StoredEvent[]) => list.map(({ payload }) => payload.type);
      expect(types(copied.slice(0, fork.throughSeq))).toEqual(
        types(events.slice(0, fork.throughSeq)),
      );
    }
  } finally {
    await kernel.close();
  }
  if (log === undefined) return;
  const after = await readFile(log);
  expect(after.subarray(0, complete.byteLength).equals(complete)).toBe(true);
  await expectMarks(project, log);
}

function expectKnown(events: readonly StoredEvent[], known: Known, lost: Struck["lost"]): void {
  const stored = new Map(events.map((event) => [event.seq, event]));
  for (const [seq, event] of known.seen) {
    if (lost === "power" && STREAM_EVENTS.has(event.payload.type)) continue;
    expect(stored.get(seq)).toEqual(event);
  }
  const missing = known.promised.filter(({ isIn }) => !isIn(events));
  expect(missing.map(({ what }) => what)).toEqual([]);
}

/** What the log says is kept of a call's output is there, whole. */
async function expectRetained(store: string, events: readonly StoredEvent[]): Promise<void> {
  const results = payloadsOf(events, "tool_call_terminated").map(({ result }) => result);
  const digests = new Set(JSON.stringify(results).match(/(?<="sha256":")[0-9a-f]{64}/g));
  if (digests.size === 0) return;
  const names = await readdir(store, { recursive: true });
  for (const digest of digests) {
    const path = names.find((name) => basename(name) === digest);
    expect(path, `artifact ${digest}`).toBeDefined();
    expect(sha256(await readFile(join(store, path ?? "")))).toBe(digest);
  }
}

/** A remembered answer holds from when it was given until a stricter rule is in force or promised, and never again. */
async function expectGrant(
  { client }: TestKernel,
  {
    used,
    events,
    grant,
  }: { used: SessionId; events: readonly StoredEvent[]; grant: Known["grant"] },
): Promise<void> {
  const { explanation } = await client.request(SessionPermissionExplain, {
    session_id: used,
    tool: "bash",
    arguments: { command: GRANTED_COMMAND },
  });
  const holds = explanation.tree_grant_id !== undefined;
  const isTightened = events.some(
    ({ payload }) =>
      payload.type === "session_permission_overlay_set" &&
      payload.overlay.rules.some(({ action }) => action === "bash"),
  );
  if (grant === "taken back" || isTightened) expect(holds).toBe(false);
  else if (grant === "given") expect(holds).toBe(true);
}

async function expectListed(
  kernel: TestKernel,
  session: SessionId,
  events: readonly StoredEvent[],
): Promise<void> {
  const { sessions, diagnostics } = await kernel.client.request(SessionList, {});
  expect(diagnostics).toEqual([]);
  expect(sessions.find(({ session_id }) => session_id === session)).toMatchObject({
    status: "completed",
    last_event_seq: events.length,
  });
}

/** No command ran twice, and none that the log does not know of (S-249). */
async function expectMarks(project: TempProject, log: string): Promise<void> {
  const text = await readFile(join(project.cwd, "marks"), "utf8").catch(() => "");
  const marks = text.split("\n").filter((line) => line !== "");
  expect(new Set(marks).size).toBe(marks.length);
  const started = payloadsOf(await readLog(log), "tool_call_started").map(
    ({ presentation }) => presentation.primary_argument,
  );
  for (const mark of marks) {
    expect(started).toContainEqual(expect.stringContaining(`echo ${mark} >>`));
  }
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export function lastRequest(server: ModelServer) {
  const request = server.requests.at(-1);
  if (request === undefined) throw new Error("the model was asked nothing");
  return request;
}
