import { resolve } from "node:path";
import type { PluginInspection } from "@cookie-agent/kernel";
import { string } from "@oclif/core/args";
import { defineCommand } from "../../command.ts";
import { ExitCode } from "../../exit-code.ts";
import { firstPartyDirectories } from "../../first-party.ts";
import { placeOf } from "../../plugin/require-loadable.ts";
import { printable } from "../../printable.ts";
import { print, printJson } from "../../standard-streams.ts";

export const checkPlugin = defineCommand({
  summary: "Check a plugin's manifest and what each trust tier makes of it. Runs none of its code.",
  description: "Exit code 1 when the plugin could not be loaded.",
  args: {
    folder: string({ description: "folder of the plugin; this one by default", ignoreStdin: true }),
  },
  flags: {},
  async run({ args, flags }) {
    const { inspectPlugin } = await import("@cookie-agent/kernel");
    const report = await inspectPlugin(resolve(args.folder ?? "."), firstPartyDirectories());
    if (flags.json) printJson(report);
    else print(describe(report).map(printable).join("\n"));
    return report.problems.length > 0 ? ExitCode.failure : ExitCode.success;
  },
});

function describe(report: PluginInspection): string[] {
  const { name, version, tools, problems, tiers, digest } = report;
  const lines = problems.map((problem) => `error: ${placeOf(problem)}`);
  if (name === null) return lines;
  lines.push(`${name} ${version ?? ""}: ${tools.length === 0 ? "no tools" : tools.join(", ")}`);
  lines.push(`digest   ${digest}`);
  for (const { tier, failure, notes } of tiers) {
    if (failure !== null) {
      if (problems.length === 0)
        lines.push(`${tier.padEnd(9)} cannot be used: ${placeOf(failure)}`);
    } else if (notes.length === 0) lines.push(`${tier.padEnd(9)} everything it declares`);
    else for (const note of notes) lines.push(`${tier.padEnd(9)} ${note}`);
  }
  return lines;
}
