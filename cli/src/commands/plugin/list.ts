import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { readStatuses } from "../../plugin/read-statuses.ts";
import { renderTable } from "../../render-table.ts";
import { print, printJson } from "../../standard-streams.ts";

export const listPlugins = defineCommand({
  summary: "List the plugins that are configured here, with the tools that each one owns.",
  args: {},
  flags: attachFlags,
  async run({ flags }) {
    const plugins = await withClient(flags, (client) => readStatuses(client));
    const rows = plugins.map(({ plugin, version, tier, source, state, tools }) => ({
      plugin,
      version,
      tier,
      source,
      state,
      tools,
    }));
    if (flags.json) {
      printJson({ plugins: rows });
      return undefined;
    }
    const header = ["PLUGIN", "VERSION", "TIER", "SOURCE", "STATE", "TOOLS"];
    const table = rows.map(({ plugin, version, tier, source, state, tools }) => [
      plugin,
      version ?? "-",
      tier,
      source,
      state,
      tools.join(", "),
    ]);
    print(renderTable(header, table));
    return undefined;
  },
});
