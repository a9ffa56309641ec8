import type { WorkspaceContents } from "@cookie-agent/kernel";
import { string } from "@oclif/core/args";
import { defineCommand } from "../command.ts";
import { ExitCode, ExitError, usageError } from "../exit-code.ts";
import { homeDirectory, workingDirectory } from "../open-kernel.ts";
import { printable } from "../printable.ts";
import { print, printError, printJson } from "../standard-streams.ts";
import { switchFlag } from "../switch-flag.ts";
import { ask, showWhatItBrings } from "../workspace-question.ts";

export const trust = defineCommand({
  summary: "Trust what a directory's own .cookie-agent brings, or take that back.",
  description:
    "Trust holds for exactly the content found now: any change makes the directory untrusted again. It is no permission: tools still ask. Programs outside .cookie-agent that it names are not covered.",
  args: { dir: string({ description: "directory; this one by default", ignoreStdin: true }) },
  flags: {
    yes: switchFlag("do not ask"),
    list: switchFlag("list what is trusted"),
    revoke: switchFlag("take the trust back"),
  },
  async run({ args, flags }) {
    if (flags.list) {
      if (args.dir !== undefined || flags.revoke || flags.yes) {
        throw usageError("--list stands alone: it takes no directory, no --revoke and no --yes");
      }
      await listTrusted(flags.json);
    } else {
      const directory = args.dir ?? workingDirectory();
      if (flags.revoke) await revoke(directory, flags.json);
      else await grant(directory, flags);
    }
    return undefined;
  },
});

async function listTrusted(json: boolean): Promise<void> {
  const { listTrust } = await import("@cookie-agent/kernel");
  const { workspaces, warning } = await listTrust(homeDirectory());
  if (warning !== undefined) printError(`warning: ${warning}`);
  if (json) printJson({ workspaces });
  else
    for (const { directory, trustedAt } of workspaces)
      print(printable(`${trustedAt}  ${directory}`));
}

async function revoke(directory: string, json: boolean): Promise<void> {
  const { revokeTrust } = await import("@cookie-agent/kernel");
  const revoked = await revokeTrust(homeDirectory(), directory);
  if (json) printJson({ revoked });
  else print(revoked ? "trust taken back" : "nothing was trusted here");
}

async function grant(
  directory: string,
  { json, yes }: { readonly json: boolean; readonly yes: boolean },
): Promise<void> {
  const { grantTrust, inspectContents } = await import("@cookie-agent/kernel");
  const homeDir = homeDirectory();
  const found = await inspectContents(directory);
  if (!found.present) {
    if (json) printJson({ trusted: false, directory: found.directory, present: false });
    else print("there is nothing to trust: the directory has no .cookie-agent");
    return;
  }
  if (found.digest === null) {
    const reason = found.contents.join("; ");
    const message = `the .cookie-agent of ${found.directory} cannot be trusted: ${reason}`;
    throw new ExitError(ExitCode.failure, "untrustable", message);
  }
  if (!yes) await confirm(found);
  await grantTrust(homeDir, found.directory, found.digest);
  if (json) printJson({ trusted: true, directory: found.directory, present: true });
  else print(printable(`trusted: ${found.directory}`));
}

/** The default is no. */
async function confirm(found: WorkspaceContents): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw usageError("there is no terminal to ask on; read what it brings, then add --yes");
  }
  showWhatItBrings(found);
  printError("Its files:");
  for (const path of found.contents) printError(printable(`  ${path}`));
  if ((await ask("Trust this content? [y/N] ")) === "yes") return;
  throw new ExitError(ExitCode.failure, "declined", "nothing was trusted");
}
