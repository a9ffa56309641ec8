import { randomUUID } from "node:crypto";
import { type ClientKey, SessionRename, type TitleRequest } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { usageError } from "../../exit-code.ts";
import { printable } from "../../printable.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printJson } from "../../standard-streams.ts";
import { switchFlag } from "../../switch-flag.ts";

export const renameSession = defineCommand({
  summary: "Give a session another title.",
  args: {
    id: string({ description: "session id", required: true, ignoreStdin: true }),
    title: string({ description: "the new title", ignoreStdin: true }),
  },
  flags: {
    clear: switchFlag("leave it without a title"),
    reset: switchFlag("let the session name itself again"),
    ...attachFlags,
    "data-dir": dataDirFlag,
  },
  async run({ args, flags }) {
    const session_id = requireSessionId(args.id, "session rename");
    const change = changeOf(args.title, flags);
    const { session } = await withClient(flags, (client) =>
      client.request(SessionRename, {
        session_id,
        client_rename_id: randomUUID() as ClientKey,
        change,
      }),
    );
    if (flags.json) printJson({ session });
    else print(session.title === null ? "the session has no title" : printable(session.title));
    return undefined;
  },
});

function changeOf(
  title: string | undefined,
  flags: { readonly clear: boolean; readonly reset: boolean },
): TitleRequest {
  const wishes = [title !== undefined, flags.clear, flags.reset].filter(Boolean).length;
  if (wishes !== 1) throw usageError("give either a title, --clear or --reset");
  if (title !== undefined) return { type: "set", title };
  return { type: flags.clear ? "clear" : "reset" };
}
