import { RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";
import { BaseCommand } from "../../base-command.ts";
import { openLocalKernel } from "../../open-kernel.ts";
import { renderTable } from "../../render-table.ts";

export default class ListTools extends BaseCommand {
  static override summary = "List the tools of the active profile and who serves them.";

  async run(): Promise<void> {
    const { flags } = await this.parse(ListTools);
    const local = await openLocalKernel({ headless: true });
    try {
      const { snapshot } = await local.client.request(RuntimeSnapshotGet, {});
      if (flags.json) return this.printJson({ tools: snapshot.tools });
      this.print(
        renderTable(
          ["TOOL", "PLUGIN", "TIER", "ACTION", "CONCURRENCY", "SHADOWS"],
          snapshot.tools.map((tool) => [
            tool.name,
            tool.plugin,
            tool.tier,
            tool.action,
            tool.concurrency,
            tool.shadowed.join(", "),
          ]),
        ),
      );
    } finally {
      await local.close();
    }
  }
}
