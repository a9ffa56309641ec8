import { cp } from "node:fs/promises";
import { join } from "node:path";
import {
  ApprovalRespond,
  type ClientKey,
  SessionCompact,
  SessionFork,
  type SessionId,
  SessionList,
  SessionPermissionExplain,
  SessionPermissionSet,
  SessionRemove,
  SessionRename,
  SessionResume,
  SessionRevert,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { expect } from "vitest";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";
import { findLogs } from "../../support/session-log.ts";
import { payloadsOf } from "../../support/session-watch.ts";
import { sessionOf } from "./log-lines.ts";
import { knownAt, type Recording, recordScript } from "./record-script.ts";
import { ASKED_COMMAND } from "./scripted-session.ts";

/** The session that the script leaves, in copies of its store. */
export interface StoredSession {
  readonly recording: Recording;
  readonly sessionId: SessionId;
  readonly forkId: SessionId;
  /** Puts the store somewhere else; yields its place and the session's log there. */
  copy(name: string): Promise<{ dataDir: string; log: string }>;
  open(dataDir: string): Promise<TestKernel>;
}

export async function storedSession(): Promise<StoredSession> {
  const recording = await recordScript();
  const { project, server, base, changes } = recording;
  const { sessionId, forks } = knownAt(recording, changes.length);
  const forkId = forks[0]?.sessionId;
  if (sessionId === undefined || forkId === undefined) throw new Error("nothing was recorded");
  return {
    recording,
    sessionId,
    forkId,
    async copy(name) {
      const dataDir = join(project.home, name);
      await cp(base, dataDir, { recursive: true });
      const logs = await findLogs({ stateDir: dataDir });
      return { dataDir, log: logs.find((path) => sessionOf(path) === sessionId) ?? "" };
    },
    open: (dataDir) => openTestKernel({ on: { project, server }, dataDir }),
  };
}

/** What can be done to a session that is at rest; each says whether it can be seen in the log and the store. */
export const OPERATIONS = {
  async settings({ client }, session_id) {
    const client_rename_id = `name-${Math.random()}` as ClientKey;
    const change = { type: "set" as const, title: "Another name" };
    await client.request(SessionRename, { session_id, client_rename_id, change });
    const rule = { action: "write", resource: "another.txt", effect: "deny" } as const;
    await client.request(SessionPermissionSet, { session_id, ...rule });
    const { sessions } = await client.request(SessionList, {});
    expect(sessions.find((session) => session.session_id === session_id)?.title).toBe(
      "Another name",
    );
  },

  async grants(kernel, session_id) {
    const { client } = kernel;
    const holds = async () => {
      const call = { tool: "bash", arguments: { command: ASKED_COMMAND } };
      const asked = await client.request(SessionPermissionExplain, { session_id, ...call });
      return asked.explanation.tree_grant_id !== undefined;
    };
    const cursor = (await client.readEvents(session_id)).at(-1)?.seq ?? 0;
    const watch = kernel.watch(session_id, { cursor, interactive: true });
    const runId = await kernel.start(session_id, "Ask.");
    const { payload } = await watch.event("approval_requested");
    const { approval_id, revision, operation_fingerprint } = payload.request;
    await watch.event("approval_escalated");
    await client.request(ApprovalRespond, {
      session_id,
      approval_id,
      request_revision: revision,
      operation_fingerprint,
      client_response_id: `answer-${approval_id}` as ClientKey,
      decision: "approve_tree",
    });
    expect((await watch.end(runId)).type).toBe("run_completed");
    expect(await holds()).toBe(true);
    const rule = { action: "bash", resource: `no-${runId}`, effect: "deny" } as const;
    await client.request(SessionPermissionSet, { session_id, ...rule });
    expect(await holds()).toBe(false);
  },

  async compaction({ client }, session_id) {
    const before = await client.readEvents(session_id);
    const { compacted } = await client.request(SessionCompact, { session_id, focus: null });
    const added = (await client.readEvents(session_id)).slice(before.length);
    expect(payloadsOf(added, "context_checkpoint_committed")).toHaveLength(compacted ? 1 : 0);
  },

  async branch({ client }, session_id) {
    const events = await client.readEvents(session_id);
    const through_seq = events.findLast(({ payload }) => payload.type === "run_completed")?.seq;
    if (through_seq === undefined) throw new Error("no run has ended");
    await client.request(SessionRevert, { session_id, through_seq });
    const fork = await client.request(SessionFork, { session_id, through_seq });
    const copied = await client.readEvents(fork.session_id);
    expect(copied.filter(({ seq }) => seq <= through_seq).map(essence)).toEqual(
      events.filter(({ seq }) => seq <= through_seq).map(essence),
    );
  },

  /** What a call printed is kept, and can be read as long as the log says so. */
  async artifact(kernel, session) {
    const events = await kernel.client.readEvents(session);
    const [uri] = retainedIn(events);
    if (uri !== undefined) expect(await readOutput(kernel, session, uri)).toBe("completed");
  },

  async removal({ client }, session_id) {
    await client.request(SessionRemove, { session_id });
    await expect(client.readEvents(session_id)).rejects.toMatchObject({ code: "session_missing" });
    const { sessions, diagnostics } = await client.request(SessionList, {});
    expect(sessions.map((session) => session.session_id)).not.toContain(session_id);
    expect(diagnostics).toEqual([]);
  },
} satisfies Record<string, (kernel: TestKernel, session: SessionId) => Promise<void>>;

export type Operation = keyof typeof OPERATIONS;

/** Without a removal, after which nothing more can be done. */
export const LASTING = (Object.keys(OPERATIONS) as Operation[]).filter(
  (operation) => operation !== "removal",
);

/** Everything that can be done, and at last the removal; the fork stays what it is. */
export async function operateAll(
  kernel: TestKernel,
  { sessionId, forkId }: Pick<StoredSession, "sessionId" | "forkId">,
): Promise<void> {
  await kernel.client.request(SessionResume, { session_id: sessionId });
  const forked = await kernel.client.readEvents(forkId);
  for (const operation of LASTING) await OPERATIONS[operation](kernel, sessionId);
  await OPERATIONS.removal(kernel, sessionId);
  expect(await kernel.client.readEvents(forkId)).toEqual(forked);
  await OPERATIONS.artifact(kernel, forkId);
}

/** The public addresses of what calls printed, without what is empty. */
export function retainedIn(events: readonly StoredEvent[]): string[] {
  return payloadsOf(events, "tool_call_terminated").flatMap(({ result }) => {
    const kept = result?.retained_output;
    const printed = kept?.streams.filter((stream) => stream.byte_length > 0) ?? [];
    const uri = kept?.reference.replace("/sha256/", "/");
    return printed.map(({ name }) => (name === null ? `${uri}` : `${uri}/${name}`));
  });
}

/** How a call that reads it ends: `completed`, or its error. */
export async function readOutput(
  kernel: TestKernel,
  session: SessionId,
  uri: string,
): Promise<string | undefined> {
  const { events, end } = await kernel.run(`Read ${uri}`, { session });
  expect(end.type).toBe("run_completed");
  const [read] = payloadsOf(events, "tool_call_terminated");
  return read?.error?.code ?? read?.outcome;
}

function essence({ seq, payload }: StoredEvent): unknown {
  return payload.type === "session_created" ? { seq } : { seq, payload };
}
