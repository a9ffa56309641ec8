import {
  SessionChildren,
  type SessionId,
  type SessionMeta,
  SessionRemove,
  SessionTree as SessionTreeMethod,
  type SessionTreeNode,
} from "@cookie-agent/sdk/protocol";
import type { SessionTree } from "../session/session-tree.ts";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

/** A frame may not be nested deeper, and nobody delegates so far. */
const MAX_SHOWN_DEPTH = 48;

export function registerTreeMethods(route: Route, { sessions }: ClientServices): void {
  route(SessionChildren, async ({ session_id }) => {
    const tree = await sessions.tree(session_id);
    const children = tree.childrenOf(session_id).map((child) => ({
      session_id: child.session_id,
      agent: child.creation_selection.agent,
      title: child.title,
      title_updated_seq: child.title_updated_seq,
      status: child.status,
      usage: tree.usageOf(child.session_id) ?? null,
      ...(child.handle === undefined ? {} : { handle: child.handle }),
    }));
    return { children, diagnostics: [...tree.diagnostics] };
  });
  route(SessionTreeMethod, async ({ session_id }) => {
    const tree = await sessions.tree(session_id);
    const access = await sessions.access(tree.rootId);
    const diagnostics = [...tree.diagnostics, ...unplaced(tree)];
    return { tree: nodeOf(tree, tree.require(session_id), access), diagnostics };
  });
  route(SessionRemove, async ({ session_id }) => ({
    session_ids: await sessions.remove(session_id),
  }));
}

function nodeOf(
  tree: SessionTree,
  meta: Omit<SessionMeta, "access">,
  access: "owned" | "free" | "foreign",
  depth = 0,
): SessionTreeNode {
  const children = depth < MAX_SHOWN_DEPTH ? tree.childrenOf(meta.session_id) : [];
  return {
    session: { ...meta, access },
    children: children.map((child) => nodeOf(tree, child, access, depth + 1)),
  };
}

/** Sessions that cannot be shown below their parent, because that one could not be read. */
function unplaced(tree: SessionTree): string[] {
  return tree.sessionIds.flatMap((sessionId: SessionId) => {
    const { origin } = tree.require(sessionId);
    if (origin.type === "root" || tree.has(origin.parent_session_id)) return [];
    return [`session ${sessionId}: its parent ${origin.parent_session_id} cannot be read`];
  });
}
