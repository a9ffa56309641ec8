import { CookieError, type SessionId, type SessionOrigin } from "@cookie-agent/sdk/protocol";
import { readLog } from "../event/read-log.ts";
import type { ArchivedSession } from "../store/usage-archive.ts";

/** Where a stored session comes from, from its cache or the beginning of its log. */
export async function originOf({
  sessionId,
  origin,
  openLog,
}: ArchivedSession): Promise<SessionOrigin> {
  if (origin !== null) return origin;
  const file = await openLog();
  try {
    for await (const batch of readLog(file.read(), sessionId)) {
      for (const item of batch) {
        if (item.kind !== "event" || item.event.payload.type !== "session_created") continue;
        return item.event.payload.origin;
      }
    }
  } finally {
    await file.close();
  }
  throw new CookieError("engine", `the log of session ${sessionId} has no readable beginning`);
}

/**
 * The members of a tree that stand at or below a session. Rejects with `corrupt_delegation` when their origins make
 * no tree: a root that is none, a parent outside it, a cycle (S 13).
 */
export async function subtreeOf<
  M extends { readonly sessionId: SessionId; readonly rootId: SessionId },
>(
  members: readonly M[],
  top: SessionId,
  origin: (member: M) => Promise<SessionOrigin> | SessionOrigin,
): Promise<M[]> {
  const parents = new Map<SessionId, SessionId | null>();
  for (const member of members)
    parents.set(member.sessionId, parentOf(member, await origin(member)));
  return members.filter(({ sessionId }) => ancestry(sessionId, parents).includes(top));
}

function parentOf(
  { sessionId, rootId }: { readonly sessionId: SessionId; readonly rootId: SessionId },
  origin: SessionOrigin,
): SessionId | null {
  if (sessionId === rootId) {
    if (origin.type === "root") return null;
    throw corrupt(sessionId, "it lies where a root lies and is none");
  }
  if (origin.type === "delegated" && origin.root_session_id === rootId) {
    return origin.parent_session_id;
  }
  throw corrupt(sessionId, "its origin names another tree");
}

/** The session and those above it, up to the root. */
function ancestry(
  sessionId: SessionId,
  parents: ReadonlyMap<SessionId, SessionId | null>,
): SessionId[] {
  const line: SessionId[] = [];
  for (let at: SessionId | null = sessionId; at !== null; ) {
    line.push(at);
    const parent: SessionId | null | undefined = parents.get(at);
    if (parent === undefined) throw corrupt(sessionId, "a session above it is not of its tree");
    if (line.length > parents.size) throw corrupt(sessionId, "the sessions above it form a circle");
    at = parent;
  }
  return line;
}

function corrupt(sessionId: SessionId, problem: string): CookieError {
  return new CookieError(
    "corrupt_delegation",
    `the usage of the tree cannot be told: session ${sessionId} does not fit in: ${problem}`,
    { data: { session_id: sessionId } },
  );
}
