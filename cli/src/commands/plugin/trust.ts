import { string } from "@oclif/core/args";
import { defineCommand } from "../../command.ts";
import { ExitCode, ExitError, usageError } from "../../exit-code.ts";
import { firstPartyDirectories } from "../../first-party.ts";
import { homeDirectory, workingDirectory } from "../../open-kernel.ts";
import { placeOf } from "../../plugin/require-loadable.ts";
import { printable } from "../../printable.ts";
import { print, printError, printJson } from "../../standard-streams.ts";
import { switchFlag } from "../../switch-flag.ts";
import { ask } from "../../workspace-question.ts";

export const trustPlugin = defineCommand({
  summary: "Trust a plugin of your own configuration, as its manifest is now.",
  description:
    "Writes trust and the digest of its manifest into your config.toml, and nothing else there. A manifest that changes later keeps the plugin from loading until you trust it again. Trust lets a plugin declare more; it is no permission for its tools.",
  args: {
    plugin: string({ description: "name of the plugin", required: true, ignoreStdin: true }),
  },
  flags: { yes: switchFlag("do not ask") },
  async run({ args, flags }) {
    const { inspectPlugin, planPluginTrust } = await import("@cookie-agent/kernel");
    const shipped = firstPartyDirectories();
    const plan = await planPluginTrust(
      {
        homeDir: homeDirectory(),
        cwd: workingDirectory(),
        env: process.env,
        firstPartyDirectories: shipped,
      },
      args.plugin,
    );
    const { problems, tiers } = await inspectPlugin(plan.directory, shipped);
    const [problem] = problems;
    if (problem !== undefined) {
      const message = `${args.plugin} cannot be loaded: ${placeOf(problem)}`;
      throw new ExitError(ExitCode.failure, "invalid_declaration", message);
    }
    const notes = tiers.find(({ tier }) => tier === "untrusted")?.notes ?? [];
    if (!plan.done) {
      if (!flags.yes) await confirm(plan.directory, plan.digest, notes);
      await plan.apply();
    }
    if (flags.json) printJson({ plugin: args.plugin, trusted: true, integrity: plan.digest });
    else print(printable(`trusted: ${args.plugin} ${plan.digest} (${plan.configFile})`));
    return undefined;
  },
});

/** The default is no. */
async function confirm(directory: string, digest: string, notes: readonly string[]): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw usageError("there is no terminal to ask on; read the plugin, then add --yes");
  }
  printError(`${directory} (${digest})`);
  for (const note of notes) printError(`  without trust: ${note}`);
  if ((await ask("Trust this plugin? [y/N] ")) === "yes") return;
  throw new ExitError(ExitCode.failure, "declined", "nothing was trusted");
}
