import { open, rm } from "node:fs/promises";
import { SessionGet, type SessionMeta, type StoredEvent } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { option, string as stringFlag } from "@oclif/core/flags";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { describeSkipped } from "../../describe-session.ts";
import { ExitCode, ExitError } from "../../exit-code.ts";
import { jsonLine } from "../../printable.ts";
import { requireSessionId } from "../../session-id.ts";
import { sessionMarkdown } from "../../session-markdown.ts";
import { printError } from "../../standard-streams.ts";

export const exportSession = defineCommand({
  summary: "Write a session's record to stdout or a file: every event, or what was said.",
  description:
    "As jsonl one event a line, those that a revert has hidden too; as markdown the conversation as it counts now. With --json one document with the session and its events.",
  args: { id: string({ description: "session id", required: true, ignoreStdin: true }) },
  flags: {
    format: option({
      description: "what to write",
      options: ["jsonl", "markdown"] as const,
      default: "jsonl",
    })(),
    "output-file": stringFlag({ char: "o", description: "a new file instead of stdout" }),
    ...attachFlags,
    "data-dir": dataDirFlag,
  },
  async run({ args, flags }) {
    const sessionId = requireSessionId(args.id, "session export");
    const { session, events } = await withClient(flags, async (client) => ({
      ...(await client.request(SessionGet, { session_id: sessionId })),
      events: await client.readEvents(sessionId),
    }));
    for (const line of describeSkipped(session)) printError(line);
    const text = flags.json ? jsonLine({ session, events }) : render(flags.format, session, events);
    const file = flags["output-file"];
    if (file === undefined) process.stdout.write(text);
    else await writeNew(file, text);
    return undefined;
  },
});

function render(
  format: "jsonl" | "markdown",
  session: SessionMeta,
  events: readonly StoredEvent[],
): string {
  return format === "markdown"
    ? sessionMarkdown(session, events)
    : events.map((event) => jsonLine(event)).join("");
}

/** What a session holds is its owner's alone, and nothing that is there already is replaced. */
async function writeNew(path: string, text: string): Promise<void> {
  let made = false;
  try {
    const file = await open(path, "wx", 0o600);
    made = true;
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (made) await rm(path, { force: true });
    const { code = "unwritable" } = error as NodeJS.ErrnoException;
    const problem = code === "EEXIST" ? "it exists already" : code;
    const message = `${path} cannot be written (${problem}); name another file with --output-file`;
    throw new ExitError(ExitCode.failure, "output", message, error);
  }
}
