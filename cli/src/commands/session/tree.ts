import { SessionTree, type SessionTreeNode } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { renderTable } from "../../render-table.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printError, printJson } from "../../standard-streams.ts";

export const sessionTree = defineCommand({
  summary: "Show a session and what was delegated from it.",
  args: { id: string({ description: "session id", required: true, ignoreStdin: true }) },
  flags: { ...attachFlags, "data-dir": dataDirFlag },
  async run({ args, flags }) {
    const session_id = requireSessionId(args.id, "session tree");
    const found = await withClient(flags, (client) => client.request(SessionTree, { session_id }));
    for (const diagnostic of found.diagnostics) printError(diagnostic);
    if (flags.json) printJson(found);
    else print(renderTable(["SESSION", "AGENT", "STATUS", "TITLE"], rowsOf(found.tree)));
    return undefined;
  },
});

function rowsOf({ session, children }: SessionTreeNode, depth = 0): string[][] {
  const { session_id, creation_selection, status, title } = session;
  const place = `${depth === 0 ? "" : `${"   ".repeat(depth - 1)}└─ `}${session_id}`;
  return [
    [place, creation_selection.agent, status, title ?? ""],
    ...children.flatMap((child) => rowsOf(child, depth + 1)),
  ];
}
