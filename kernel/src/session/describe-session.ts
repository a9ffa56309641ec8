import {
  CookieError,
  type SessionId,
  type SessionMeta,
  type SkippedEvent,
} from "@cookie-agent/sdk/protocol";
import type { SessionState } from "./session-state.ts";

/** The session as lists show it, from its fold (D 5). */
export function describeSession(
  sessionId: SessionId,
  state: SessionState,
  skipped: readonly SkippedEvent[],
): SessionMeta {
  if (state.origin === null || state.creationSelection === null || state.revisions === null) {
    throw new CookieError("engine", `the log of session ${sessionId} has no readable beginning`);
  }
  return {
    session_id: sessionId,
    origin: state.origin,
    cwd_identity: state.cwdIdentity,
    creation_selection: state.creationSelection,
    ...state.revisions,
    title: state.title,
    title_updated_seq: state.titleUpdatedSeq,
    last_event_seq: state.lastSeq,
    last_activity: state.lastActivity,
    status: state.status,
    skipped_events: [...skipped],
    ...(state.handle === null ? {} : { handle: state.handle }),
  };
}
