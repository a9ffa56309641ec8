import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  type PermissionMode,
  type RunSelection,
  RuntimeSnapshotGet,
  SessionCreate,
  type SessionId,
  SessionPermissionSet,
  SessionResume,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { requireSessionId } from "../session-id.ts";
import type { AllowRule } from "./allowed-tools.ts";
import { type SelectionFlags, selectRun } from "./select-run.ts";

export interface RunSessionFlags extends SelectionFlags {
  readonly resume: string | undefined;
  readonly mode: PermissionMode;
  readonly allowed: readonly AllowRule[];
}

export interface RunSession {
  readonly sessionId: SessionId;
  /** Events up to here are older than the run. */
  readonly cursor: number;
  readonly selection: RunSelection;
}

/** The session of a run: created, or adopted with `--resume-session`; its mode and allow rules are set. */
export async function openRunSession(
  client: CookieClient,
  flags: RunSessionFlags,
): Promise<RunSession> {
  const session = await createOrResume(client, flags);
  const { sessionId } = session;
  await client.request(SessionSetPermissionMode, { session_id: sessionId, mode: flags.mode });
  for (const rule of flags.allowed) {
    await client.request(SessionPermissionSet, {
      session_id: sessionId,
      ...rule,
      effect: "allow",
      source: "flag",
    });
  }
  return session;
}

async function createOrResume(client: CookieClient, flags: RunSessionFlags): Promise<RunSession> {
  const { snapshot } = await client.request(RuntimeSnapshotGet, {});
  if (flags.resume === undefined) {
    const selection = selectRun(snapshot, flags, null);
    const { session } = await client.request(SessionCreate, { selection });
    return { sessionId: session.session_id, cursor: session.last_event_seq, selection };
  }
  const { session, selection } = await client.request(SessionResume, {
    session_id: requireSessionId(flags.resume, "--resume-session"),
  });
  return {
    sessionId: session.session_id,
    cursor: session.last_event_seq,
    selection: selectRun(snapshot, flags, selection),
  };
}
