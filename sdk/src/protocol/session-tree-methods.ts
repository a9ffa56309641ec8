import * as z from "zod";
import { SessionMeta, SessionStatus } from "./client-methods.ts";
import { request } from "./method.ts";
import { Count, SessionId } from "./scalars.ts";
import { UsageRollup } from "./usage-methods.ts";

/** A direct child as its parent's surfaces show it (D 5). */
export const ChildSummary = z.object({
  session_id: SessionId,
  agent: z.string(),
  title: z.string().nullable(),
  title_updated_seq: Count,
  status: SessionStatus,
  /** Of its visible branch, what it delegated apart. */
  usage: UsageRollup.nullable(),
  handle: z.string().optional(),
});
export type ChildSummary = z.infer<typeof ChildSummary>;

/** A session with everything that was delegated from it. */
export interface SessionTreeNode {
  session: SessionMeta;
  /** Oldest first. */
  children: SessionTreeNode[];
}
export const SessionTreeNode: z.ZodType<SessionTreeNode> = z.object({
  session: SessionMeta,
  children: z.lazy(() => z.array(SessionTreeNode)),
});

const params = () => z.strictObject({ session_id: SessionId });
/** One line for each session of the tree that could not be read. */
const diagnostics = z.array(z.string());

/** The sessions that a session delegated to, oldest first. */
export const SessionChildren = request("session.children", params, () =>
  z.object({ children: z.array(ChildSummary), diagnostics }),
);
/** A session and its descendants; the whole tree when it is a root. */
export const SessionTree = request("session.tree", params, () =>
  z.object({ tree: SessionTreeNode, diagnostics }),
);
/** Removes a root and everything below it from the disk for good. It must not be running, nor held by another process. */
export const SessionRemove = request("session.remove", params, () =>
  z.object({ session_ids: z.array(SessionId) }),
);
