import { defineCommand } from "../command.ts";
import { type Check, ok } from "../doctor/check.ts";
import { checkLocks, checkNode, checkShell, checkStateDirectory } from "../doctor/check-machine.ts";
import { checkEndpoints } from "../doctor/check-network.ts";
import { checkConfiguration, checkRuntime } from "../doctor/check-setup.ts";
import { ExitCode } from "../exit-code.ts";
import { firstPartyDirectories } from "../first-party.ts";
import { homeDirectory, workingDirectory } from "../open-kernel.ts";
import { packageInfo } from "../package-info.ts";
import { printable } from "../printable.ts";
import { print, printJson } from "../standard-streams.ts";
import { switchFlag } from "../switch-flag.ts";

export const doctor = defineCommand({
  summary: "Check what is configured, what can run, and what is wrong.",
  description:
    "Each line is ok, a warning or failed; what is not ok says how to fix it. Exit code 1 when a check failed. Nothing is sent anywhere without --network.",
  args: {},
  flags: {
    network: switchFlag("also try to reach the configured providers"),
  },
  async run({ flags }) {
    const { inspectSetup } = await import("@cookie-agent/kernel");
    const report = await inspectSetup({
      homeDir: homeDirectory(),
      cwd: workingDirectory(),
      env: process.env,
      firstPartyDirectories: firstPartyDirectories(),
    });
    const checks: Check[] = [
      ok("cookie", packageInfo().version),
      checkNode(process.version),
      checkStateDirectory(report.root),
      await checkLocks(report.root),
      checkShell(process.env["PATH"]),
      ...checkConfiguration(report),
      ...(report.problem === null ? await checkRuntime() : []),
      ...(flags.network ? await checkEndpoints(report.endpoints) : []),
    ];
    if (flags.json) printJson({ checks });
    else for (const check of checks) print(renderCheck(check));
    return checks.some(({ status }) => status === "failed") ? ExitCode.failure : ExitCode.success;
  },
});

function renderCheck({ name, status, detail, fix }: Check): string {
  const line = `${status.padEnd(8)} ${printable(`${name}: ${detail}`)}`;
  return fix === undefined ? line : `${line}\n         fix: ${printable(fix)}`;
}
