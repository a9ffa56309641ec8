import type { SessionMeta, SessionStatus } from "@cookie-agent/sdk/protocol";

/** A list never grows over the frame that carries it, however much was skipped in its sessions. */
const MAX_LISTED = 5000;
const MAX_LIST_BYTES = 12 * 1024 * 1024;
/** What an entry takes without its title and skipped events, at most. */
const ENTRY_BYTES = 2048;

export interface SessionFilter {
  readonly limit?: number | undefined;
  readonly status?: readonly SessionStatus[] | undefined;
  readonly since?: string | undefined;
}

/** The sessions that a filter lets through, in their order, as far as one answer holds them. */
export function selectSessions(
  sessions: readonly SessionMeta[],
  { limit = MAX_LISTED, status, since }: SessionFilter,
): { sessions: SessionMeta[]; more?: true } {
  const sinceMs = since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since);
  const selected: SessionMeta[] = [];
  let byteLength = 0;
  for (const session of sessions) {
    if (status !== undefined && !status.includes(session.status)) continue;
    if (Date.parse(session.last_activity) < sinceMs) continue;
    byteLength += bytesOf(session);
    if (selected.length === limit || byteLength > MAX_LIST_BYTES) {
      return { sessions: selected, more: true };
    }
    selected.push(session);
  }
  return { sessions: selected };
}

function bytesOf({ cwd_identity, title, skipped_events }: SessionMeta): number {
  const texts = cwd_identity.length + (title?.length ?? 0);
  // Text may take six bytes for a character where it has to be escaped.
  const skipped = skipped_events.length === 0 ? 0 : JSON.stringify(skipped_events).length;
  return ENTRY_BYTES + 6 * texts + 3 * skipped;
}
