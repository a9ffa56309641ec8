import type { PluginStatus } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../exit-code.ts";
import { withLocalKernel } from "../../open-kernel.ts";
import { readStatuses } from "../../plugin/read-statuses.ts";
import { requirePlugin } from "../../plugin/require-plugin.ts";
import { printable } from "../../printable.ts";
import { print, printJson } from "../../standard-streams.ts";

export const pluginStatus = defineCommand({
  summary: "Say of each plugin what it is, whether it can be used, and what the kernel took back.",
  description: "Exit code 1 when a plugin that was asked for has failed.",
  args: { plugin: string({ description: "only this one", ignoreStdin: true }) },
  flags: {},
  async run({ args, flags }) {
    const all = await withLocalKernel({}, ({ client }) => readStatuses(client));
    const plugins = args.plugin === undefined ? all : [requirePlugin(all, args.plugin)];
    if (flags.json) printJson({ plugins });
    else print(plugins.map(describe).join("\n\n"));
    const failed = args.plugin !== undefined && plugins.some(({ state }) => state === "failed");
    return failed ? ExitCode.failure : ExitCode.success;
  },
});

const STARTS = {
  tool: "at the first call",
  session: "with the first run of a session",
  startup: "with the kernel",
} satisfies Record<PluginStatus["activation"], string>;

function describe(status: PluginStatus): string {
  const { plugin, version, tier, source, state, reason, tools, activation, shadowed } = status;
  const facts: [string, string][] = [
    ["state", reason === null ? state : `${state}: ${reason}`],
    ["version", version ?? "-"],
    ["tier", `${tier}, ${source}`],
    ["starts", STARTS[activation]],
    ["tools", tools.length === 0 ? "none" : tools.join(", ")],
    ...shadowed.map(({ tool, by }): [string, string] => ["shadowed", `${tool}, owned by ${by}`]),
    ...status.diagnostics.map((text): [string, string] => ["note", text]),
  ];
  const lines = facts.map(([name, text]) => printable(`  ${name.padEnd(9)} ${text}`));
  return [printable(plugin), ...lines].join("\n");
}
