import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** What a child says of where it comes from, where it differs from a sound one. */
export interface ChildOrigin {
  readonly root_session_id?: string;
  readonly parent_session_id?: string;
}

/** Puts a copy of a root's log below it, as the log of a session that it delegated to; without a cache. */
export async function addChildSession(
  rootLog: string,
  childId: string,
  origin: ChildOrigin = {},
): Promise<string> {
  const lines = (await readFile(rootLog, "utf8")).trimEnd().split("\n");
  const first = JSON.parse(lines[0] ?? "") as { session_id: string; payload: object };
  const rootId = first.session_id;
  const delegated = {
    type: "delegated",
    root_session_id: rootId,
    parent_session_id: rootId,
    parent_run_id: childId,
    parent_tool_call_id: childId,
    invocation_id: "invocation",
    depth: 1,
    ...origin,
  };
  const events = lines.map((line, index) => {
    const event = JSON.parse(line) as { payload: object };
    const payload = index === 0 ? { ...event.payload, origin: delegated } : event.payload;
    return `${JSON.stringify({ ...event, session_id: childId, payload })}\n`;
  });
  const directory = join(dirname(rootLog), "subagents", childId);
  await mkdir(directory, { recursive: true });
  const log = join(directory, "events.jsonl");
  await writeFile(log, events.join(""));
  return log;
}
