import { SessionList } from "@cookie-agent/sdk/protocol";
import { Flags } from "@oclif/core";
import { BaseCommand } from "../../base-command.ts";
import { openLocalKernel } from "../../open-kernel.ts";
import { renderTable } from "../../render-table.ts";

export default class ListSessions extends BaseCommand {
  static override summary = "List the sessions of this directory, newest first.";
  static override flags = {
    limit: Flags.integer({ description: "at most this many", min: 1 }),
    "data-dir": Flags.string({ description: "where sessions are kept" }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(ListSessions);
    const dataDir = flags["data-dir"];
    const local = await openLocalKernel({
      headless: true,
      ...(dataDir === undefined ? {} : { dataDir }),
    });
    try {
      const { sessions } = await local.client.request(SessionList, {});
      const shown = sessions.slice(0, flags.limit ?? sessions.length);
      if (flags.json) return this.printJson({ sessions: shown });
      if (shown.length === 0) return this.print("no sessions in this directory yet");
      this.print(
        renderTable(
          ["SESSION", "STATUS", "LAST ACTIVITY", "TITLE"],
          shown.map((session) => [
            session.session_id,
            session.status,
            session.last_activity,
            session.title ?? "",
          ]),
        ),
      );
    } finally {
      await local.close();
    }
  }
}
