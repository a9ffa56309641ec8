import { createInterface } from "node:readline/promises";
import { Args, Flags } from "@oclif/core";
import { BaseCommand } from "../base-command.ts";
import { ExitCode, ExitError } from "../exit-code.ts";
import { homeDirectory } from "../open-kernel.ts";
import { printable } from "../render-table.ts";

export default class Trust extends BaseCommand {
  static override summary = "Trust what a directory's own .cookie-agent brings, or take that back.";
  static override description =
    "Trust holds for exactly the content found now: any change makes the directory untrusted again. Programs outside .cookie-agent that it names are not covered.";
  static override args = { dir: Args.string({ description: "directory; default: this one" }) };
  static override flags = {
    yes: Flags.boolean({ description: "do not ask", default: false }),
    list: Flags.boolean({ description: "list what is trusted", default: false }),
    revoke: Flags.boolean({ description: "take the trust back", default: false }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Trust);
    const { inspectContents, grantTrust, listTrust, revokeTrust } = await import(
      "@cookie-agent/kernel"
    );
    const homeDir = homeDirectory();
    if (flags.list) {
      const records = await listTrust(homeDir);
      if (flags.json) return this.printJson({ workspaces: records });
      for (const { directory, trustedAt } of records) this.print(`${trustedAt}  ${directory}`);
      return;
    }
    const directory = args.dir ?? process.cwd();
    if (flags.revoke) {
      const removed = await revokeTrust(homeDir, directory);
      if (flags.json) return this.printJson({ revoked: removed });
      return this.print(removed ? "trust taken back" : "nothing was trusted here");
    }
    const found = await inspectContents(directory);
    if (!found.present) {
      if (flags.json) return this.printJson({ trusted: false, present: false });
      return this.print("there is nothing to trust: the directory has no .cookie-agent");
    }
    if (found.digest === null) {
      const reason = found.contents.join("; ");
      throw new ExitError(ExitCode.failure, "untrustable", `this cannot be trusted: ${reason}`);
    }
    if (!flags.yes) await this.#confirm(found.directory, found.contents);
    await grantTrust(homeDir, found.directory, found.digest);
    if (flags.json) this.printJson({ trusted: true, directory: found.directory });
    else this.print(`trusted: ${found.directory}`);
  }

  async #confirm(directory: string, contents: readonly string[]): Promise<void> {
    if (!process.stdin.isTTY || !process.stderr.isTTY) {
      throw new ExitError(
        ExitCode.usage,
        "usage",
        "there is no terminal to ask on; read the directory, then run `cookie trust --yes`",
      );
    }
    process.stderr.write(`${printable(directory)} brings:\n`);
    for (const line of contents) process.stderr.write(`  ${printable(line)}\n`);
    process.stderr.write("Programs outside it that it names are not covered.\n");
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const answer = await terminal.question("Trust this content? [y/N] ");
    terminal.close();
    if (!/^y(?:es)?$/i.test(answer.trim())) {
      throw new ExitError(ExitCode.failure, "declined", "nothing was trusted");
    }
  }
}
