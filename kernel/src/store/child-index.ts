import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { SessionMeta } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import type { ChildIndex, StoredMetadata } from "./session-store.ts";

const INDEX_FILE = "index.json";
const MAX_INDEX_BYTES = 16 * 1024 * 1024;

const { session_id, title, title_updated_seq, last_event_seq, last_activity, status, handle } =
  SessionMeta.shape;
const IndexedChild = z.object({
  session_id,
  parent_session_id: session_id,
  agent: z.string(),
  title,
  title_updated_seq,
  last_event_seq,
  last_activity,
  status,
  handle,
});
const IndexFile = z.object({ version: z.literal(1), children: z.array(IndexedChild) });

export function indexPath(childrenDirectory: string): string {
  return join(childrenDirectory, INDEX_FILE);
}

export function indexOfChildren(children: readonly StoredMetadata[]): ChildIndex {
  return {
    version: 1,
    children: children.flatMap(({ origin, creation_selection, ...meta }) =>
      origin.type === "root"
        ? []
        : IndexedChild.parse({
            ...meta,
            parent_session_id: origin.parent_session_id,
            agent: creation_selection.agent,
          }),
    ),
  };
}

/** Undefined when there is none or it cannot be used: those children are unknown until the tree is loaded (S-072). */
export async function readIndexFile(path: string): Promise<ChildIndex | undefined> {
  try {
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
    const file = await open(path, flags);
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.size > MAX_INDEX_BYTES) return undefined;
      return IndexFile.parse(JSON.parse(await file.readFile("utf8")));
    } finally {
      await file.close();
    }
  } catch {
    return undefined;
  }
}
