import { CookieError, type SessionId } from "@cookie-agent/sdk/protocol";

export function missing(sessionId: SessionId): CookieError {
  return new CookieError(
    "session_missing",
    `there is no session ${sessionId} in this directory; \`cookie session list\` shows them`,
  );
}

export function running(sessionId: SessionId): CookieError {
  return new CookieError(
    "session_running",
    `session ${sessionId} is running; wait for its end or cancel it`,
    { data: { session_id: sessionId } },
  );
}

export function notRoot(sessionId: SessionId, rootId: SessionId): CookieError {
  return new CookieError(
    "not_root_session",
    `session ${sessionId} was delegated; it can be removed together with its root ${rootId} alone`,
    { data: { session_id: sessionId } },
  );
}
