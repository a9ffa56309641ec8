import { CookieError, type SessionId } from "@cookie-agent/sdk/protocol";

/** A failure of the disk as its victim should read it; an error that already says its code stays as it is. */
export function storageFailed(sessionId: SessionId, cause: unknown): CookieError {
  if (cause instanceof CookieError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new CookieError(
    "storage_failed",
    `the storage of session ${sessionId} failed (${reason}); nothing of this step was recorded; ` +
      "free space or repair the disk and try again",
    { cause, data: { session_id: sessionId } },
  );
}
