// Opens a log, or only reads and parses its lines, in a process of its own, as a resumed session does. Run by path.
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { SessionId } from "@cookie-agent/sdk/protocol";
import { EventLog } from "../../kernel/dist/event/event-log.js";
import { GroupCommit } from "../../kernel/dist/event/group-commit.js";
import { SessionState } from "../../kernel/dist/session/session-state.js";
import { LocalLogFile } from "../../kernel/dist/store/local-log-file.js";

const [, , path = "", how] = process.argv;

async function open(): Promise<number> {
  const state = new SessionState();
  const sessionId = basename(dirname(path)) as SessionId;
  const log = await EventLog.open({
    sessionId,
    rootId: sessionId,
    location: { sessionId, rootId: sessionId },
    store: { open: () => LocalLogFile.open(path) } as never,
    sync: new GroupCommit(),
    observer: state,
    metadata: () => ({}) as never,
  });
  await log.close();
  return state.lastSeq;
}

function parse(): number {
  const bytes = readFileSync(path);
  let count = 0;
  let from = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
    JSON.parse(bytes.toString("utf8", from, end));
    count += 1;
    from = end + 1;
  }
  return count;
}

const start = performance.now();
const count = how === "open" ? await open() : parse();
const ms = performance.now() - start;
const peakMib = process.resourceUsage().maxRSS / 1024;
process.stdout.write(JSON.stringify({ count, ms, peakMib }));
