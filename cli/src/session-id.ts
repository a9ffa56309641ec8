import { CookieError, SessionId } from "@cookie-agent/sdk/protocol";

/** A session id as the user typed it; `source` names the option or command it was given to. */
export function requireSessionId(text: string, source: string): SessionId {
  const parsed = SessionId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new CookieError(
    "session_missing",
    `${source}: "${text}" is no session id; \`cookie session list\` shows the ids`,
  );
}
