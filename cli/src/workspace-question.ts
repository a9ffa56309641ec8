import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { WorkspaceContents } from "@cookie-agent/kernel";
import { ExitCode, ExitError } from "./exit-code.ts";
import { homeDirectory, workingDirectory } from "./open-kernel.ts";
import { printable } from "./printable.ts";
import { printError } from "./standard-streams.ts";

export type Answer = "yes" | "no" | "quit";

/** One line from the terminal; the default is no, and its end or Ctrl-C is quit. */
export function ask(question: string): Promise<Answer> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    terminal.once("close", () => resolve("quit"));
    terminal.question(question, (line) => {
      const said = line.trim().toLowerCase();
      resolve(/^y(?:es)?$/.test(said) ? "yes" : /^q(?:uit)?$/.test(said) ? "quit" : "no");
      terminal.close();
    });
  });
}

export function showWhatItBrings({ directory, brings }: WorkspaceContents): void {
  printError(printable(`${directory} brings:`));
  for (const line of brings) printError(printable(`  ${line}`));
  printError("Programs outside it that it names are not covered.");
}

/**
 * Before a run on a terminal: shows what an untrusted directory would have executed and asks whether to trust exactly
 * that (C 2.9). Somebody who only looks at a pipe, a file or JSON is not asked.
 */
export async function offerTrust(): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY || !process.stderr.isTTY) return;
  const directory = workingDirectory();
  if (!existsSync(join(directory, ".cookie-agent"))) return;
  const { grantTrust, reviewWorkspace } = await import("@cookie-agent/kernel");
  const homeDir = homeDirectory();
  // What is wrong with it is said by whoever loads it.
  const found = await reviewWorkspace(homeDir, directory).catch(() => undefined);
  if (found === undefined || found.digest === null || found.brings.length === 0) return;
  if (found.state !== "untrusted" && found.state !== "changed") return;
  if (found.state === "changed") printError("This directory changed since it was trusted.");
  showWhatItBrings(found);
  switch (await ask("Trust this content? [y]es, [N]o, go on without it, [q]uit: ")) {
    case "yes":
      await grantTrust(homeDir, found.directory, found.digest);
      return;
    case "no":
      return;
    case "quit":
      throw new ExitError(ExitCode.cancelled, "cancelled", "nothing was run");
  }
}
