import {
  CookieError,
  type SessionId,
  type SessionOrigin,
  type UsageRollup,
  UsageSum,
} from "@cookie-agent/sdk/protocol";
import type { UsageArchive } from "../store/usage-archive.ts";
import { subtreeOf } from "./session-edges.ts";
import type { SessionRegistry } from "./session-registry.ts";

/**
 * What the visible branches of a session and its descendants used. Rejects with `tree_session_not_found`, with
 * `corrupt_delegation`, or as reading a log does: a sum without one of them would be wrong.
 */
export async function treeUsage(
  { sessions, archive }: { readonly sessions: SessionRegistry; readonly archive: UsageArchive },
  sessionId: SessionId,
): Promise<{ usage: UsageRollup; session_count: number }> {
  const rootId = await sessions.rootOf(sessionId);
  if (rootId === undefined) {
    throw new CookieError("tree_session_not_found", `there is no session ${sessionId} here`);
  }
  const stored = await archive.tree(rootId, (problem) => {
    throw problem;
  });
  const members: {
    sessionId: SessionId;
    rootId: SessionId;
    origin: SessionOrigin;
    usage: UsageSum;
  }[] = [];
  for (const id of new Set([...stored.map((member) => member.sessionId), sessionId])) {
    members.push(
      await sessions.read(id, (actor) => {
        const usage = new UsageSum();
        usage.mergeAll(actor.usage);
        return { sessionId: id, rootId, origin: actor.meta().origin, usage };
      }),
    );
  }
  const counted = await subtreeOf(members, sessionId, ({ origin }) => origin);
  const sum = new UsageSum();
  for (const { usage } of counted) sum.mergeAll(usage);
  return { usage: sum.rollup(), session_count: counted.length };
}
