import { CookieError, type SessionId } from "@cookie-agent/sdk/protocol";

/** What whoever needs the lock of a session's tree is told while another process holds it (S-085). */
export function sessionForeign(sessionId: SessionId): CookieError {
  return new CookieError(
    "session_foreign",
    `session ${sessionId} is in use by another cookie process; wait until that one ends, or start a new session`,
    { data: { session_id: sessionId } },
  );
}
