import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { findLogs, readLog } from "./session-log.ts";
import type { TempProject } from "./temp-project.ts";

/** A UUID v7 of now. */
export function newSessionId(): SessionId {
  const time = Date.now().toString(16).padStart(12, "0");
  const random = randomBytes(10).toString("hex");
  const tail = `7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-${tail}` as SessionId;
}

/**
 * Puts a delegated session into the tree of a stored root: the root's own events, under another id and origin. The
 * tree must not be loaded while it is written.
 */
export async function storeChild(
  project: Pick<TempProject, "stateDir">,
  rootId: SessionId,
  { parentId = rootId, depth = 1 }: { parentId?: SessionId; depth?: number } = {},
): Promise<{ sessionId: SessionId; log: string }> {
  const root = (await findLogs(project)).find((log) => dirname(log).endsWith(rootId));
  if (root === undefined) throw new Error(`session ${rootId} is not on disk`);
  const sessionId = newSessionId();
  const origin = {
    type: "delegated",
    root_session_id: rootId,
    parent_session_id: parentId,
    parent_run_id: newSessionId(),
    parent_tool_call_id: newSessionId(),
    invocation_id: newSessionId(),
    depth,
  };
  const events = (await readLog(root)).map((event) => ({
    ...event,
    session_id: sessionId,
    payload:
      event.payload.type === "session_created" ? { ...event.payload, origin } : event.payload,
  }));
  const directory = join(dirname(root), "subagents", sessionId);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const metadata = JSON.parse(await readFile(join(dirname(root), "metadata"), "utf8")) as object;
  await writeFile(
    join(directory, "metadata"),
    JSON.stringify({ ...metadata, session_id: sessionId, origin }),
  );
  const log = join(directory, "events.jsonl");
  await writeFile(log, events.map((event) => `${JSON.stringify(event)}\n`).join(""), {
    mode: 0o600,
  });
  return { sessionId, log };
}
