import { Flags } from "@oclif/core";
import { BaseCommand } from "../base-command.ts";
import type { Check } from "../doctor/check.ts";
import { checkNode, checkShell, checkStateDirectory } from "../doctor/check-machine.ts";
import { checkEndpoints } from "../doctor/check-network.ts";
import { checkConfiguration, checkRuntime } from "../doctor/check-setup.ts";
import { ExitCode } from "../exit-code.ts";
import { firstPartyDirectories } from "../first-party.ts";
import { homeDirectory } from "../open-kernel.ts";
import { packageInfo } from "../package-info.ts";
import { printable } from "../render-table.ts";

export default class Doctor extends BaseCommand {
  static override summary = "Check what is configured, what can run, and what is wrong.";
  static override flags = {
    network: Flags.boolean({
      description: "also try to reach the configured providers",
      default: false,
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Doctor);
    const { inspectSetup } = await import("@cookie-agent/kernel");
    const report = await inspectSetup({
      homeDir: homeDirectory(),
      cwd: process.cwd(),
      env: process.env,
      firstPartyDirectories: firstPartyDirectories(),
    });
    const checks: Check[] = [
      { name: "cookie", status: "ok", detail: packageInfo().version },
      checkNode(process.version),
      checkStateDirectory(report.root),
      checkShell(process.env["PATH"]),
      ...checkConfiguration(report),
      ...(report.problem === null ? await checkRuntime() : []),
      ...(flags.network ? await checkEndpoints(report.endpoints) : []),
    ];
    if (flags.json) this.printJson({ checks });
    else for (const check of checks) this.print(renderCheck(check));
    if (checks.some(({ status }) => status === "failed")) process.exitCode = ExitCode.failure;
  }
}

function renderCheck({ name, status, detail, fix }: Check): string {
  const line = `${status.padEnd(8)} ${name}: ${printable(detail)}`;
  return fix === undefined ? line : `${line}\n         fix: ${printable(fix)}`;
}
