import { SessionList } from "@cookie-agent/sdk/protocol";
import { integer } from "@oclif/core/flags";
import { defineCommand } from "../../command.ts";
import { dataDirFlag, dataDirOption } from "../../data-dir-flag.ts";
import { withLocalKernel } from "../../open-kernel.ts";
import { renderTable } from "../../render-table.ts";
import { print, printError, printJson } from "../../standard-streams.ts";

export const listSessions = defineCommand({
  summary: "List the sessions of this directory, newest first.",
  args: {},
  flags: {
    limit: integer({ description: "at most this many", min: 1 }),
    "data-dir": dataDirFlag,
  },
  async run({ flags }) {
    const { sessions, diagnostics } = await withLocalKernel(
      dataDirOption(flags["data-dir"]),
      ({ client }) => client.request(SessionList, {}),
    );
    const shown = sessions.slice(0, flags.limit ?? sessions.length);
    for (const diagnostic of diagnostics) printError(diagnostic);
    if (flags.json) printJson({ sessions: shown, diagnostics });
    else if (shown.length === 0) print("no sessions in this directory yet");
    else {
      const rows = shown.map(({ session_id, status, last_activity, title }) => [
        session_id,
        status,
        last_activity,
        title ?? "",
      ]);
      print(renderTable(["SESSION", "STATUS", "LAST ACTIVITY", "TITLE"], rows));
    }
    return undefined;
  },
});
