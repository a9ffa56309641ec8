import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  isCookieError,
  type PluginName,
  type PluginStatus,
  PluginsReload,
  PluginsStatus,
} from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withDaemon } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../exit-code.ts";
import { describeStatus } from "../../plugin/describe-status.ts";
import { requirePlugin, requirePluginName } from "../../plugin/require-plugin.ts";
import { print, printJson } from "../../standard-streams.ts";

export const reloadPlugin = defineCommand({
  summary: "Let a running daemon take a plugin anew, from the configuration and the files of now.",
  description: `Its calls under way come to their end first, sessions go on, and further calls meet the new one. A plugin that config.toml has since got is added, one that is gone ends. A configuration that cannot be read changes nothing. A plugin that cannot be used afterwards keeps its tools, which then fail and say why; no other implementation takes its place.

Exit code 1 when the plugin cannot be used afterwards.`,
  examples: ['COOKIE_DAEMON_TOKEN="$token" <%= config.bin %> plugin reload linter'],
  args: {
    plugin: string({ description: "name of the plugin", required: true, ignoreStdin: true }),
  },
  flags: attachFlags,
  async run({ args, flags }) {
    const name = requirePluginName(args.plugin);
    const plugin = await withDaemon(flags, (client) => reload(client, name));
    if (flags.json) printJson({ plugin });
    else print(describeStatus(plugin));
    return plugin.state === "failed" ? ExitCode.failure : ExitCode.success;
  },
});

/** A name that neither the configuration nor the daemon knows is a mistake of the command line. */
async function reload(client: CookieClient, name: PluginName): Promise<PluginStatus> {
  try {
    return (await client.request(PluginsReload, { plugin: name })).plugin;
  } catch (error) {
    if (!isCookieError(error, "plugin_missing")) throw error;
    return requirePlugin((await client.request(PluginsStatus, {})).plugins, name);
  }
}
