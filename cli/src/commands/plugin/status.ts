import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../exit-code.ts";
import { describeStatus } from "../../plugin/describe-status.ts";
import { readStatuses } from "../../plugin/read-statuses.ts";
import { requirePlugin } from "../../plugin/require-plugin.ts";
import { print, printJson } from "../../standard-streams.ts";

export const pluginStatus = defineCommand({
  summary: "Say of each plugin what it is, whether it can be used, and what the kernel took back.",
  description: "Exit code 1 when a plugin that was asked for has failed.",
  args: { plugin: string({ description: "only this one", ignoreStdin: true }) },
  flags: attachFlags,
  async run({ args, flags }) {
    const all = await withClient(flags, (client) => readStatuses(client));
    const plugins = args.plugin === undefined ? all : [requirePlugin(all, args.plugin)];
    if (flags.json) printJson({ plugins });
    else print(plugins.map(describeStatus).join("\n\n"));
    const failed = args.plugin !== undefined && plugins.some(({ state }) => state === "failed");
    return failed ? ExitCode.failure : ExitCode.success;
  },
});
