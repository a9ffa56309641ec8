import { SessionList, SessionStatus } from "@cookie-agent/sdk/protocol";
import { integer, option, string } from "@oclif/core/flags";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { parseSince } from "../../parse-since.ts";
import { renderTable } from "../../render-table.ts";
import { print, printError, printJson } from "../../standard-streams.ts";
import { switchFlag } from "../../switch-flag.ts";

export const listSessions = defineCommand({
  summary: "List the sessions of this directory, newest first.",
  args: {},
  flags: {
    all: switchFlag("of every directory, not of this one alone"),
    limit: integer({ description: "at most this many", min: 1, max: 5000 }),
    since: string({
      description: "with something new since then: a date, a time, or how long ago (90m, 12h, 7d)",
    }),
    status: option({
      description: "in this state; may be repeated",
      options: SessionStatus.options,
      multiple: true,
      multipleNonGreedy: true,
    })(),
    ...attachFlags,
    "data-dir": dataDirFlag,
  },
  async run({ flags }) {
    const { all, limit, since, status } = flags;
    const filter = {
      ...(all && { everywhere: true }),
      ...(limit !== undefined && { limit }),
      ...(since !== undefined && { since: parseSince(since, Date.now()) }),
      ...(status !== undefined && { status }),
    };
    const { sessions, more, diagnostics } = await withClient(flags, (client) =>
      client.request(SessionList, filter),
    );
    for (const diagnostic of diagnostics) printError(diagnostic);
    if (flags.json) printJson({ sessions, ...(more && { more }), diagnostics });
    else if (sessions.length === 0) print(nothingFound(filter));
    else {
      const rows = sessions.map((session) => [
        session.session_id,
        session.status,
        session.last_activity,
        ...(all ? [session.cwd_identity] : []),
        session.title ?? "",
      ]);
      const header = ["SESSION", "STATUS", "LAST ACTIVITY", ...(all ? ["DIRECTORY"] : []), "TITLE"];
      print(renderTable(header, rows));
      if (more && limit === undefined)
        printError("there are more; --limit, --since and --status narrow the list");
    }
    return undefined;
  },
});

function nothingFound(filter: object): string {
  return Object.keys(filter).some((name) => name === "since" || name === "status")
    ? "no such sessions"
    : "everywhere" in filter
      ? "no sessions yet"
      : "no sessions in this directory yet";
}
