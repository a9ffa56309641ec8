import { realpath } from "node:fs/promises";
import type { PluginInspection, PluginProblem } from "@cookie-agent/kernel";
import { type ExitCode, ExitError } from "../exit-code.ts";
import { firstPartyDirectories } from "../first-party.ts";

/** What the kernel would make of a folder; a manifest that it would not take is an error with this exit code. */
export async function requireLoadable(
  directory: string,
  exitCode: ExitCode,
): Promise<PluginInspection> {
  const { inspectPlugin } = await import("@cookie-agent/kernel");
  const shipped = firstPartyDirectories();
  const found = await inspectPlugin(directory, shipped);
  const [problem] = found.problems;
  // Only the name keeps a shipped plugin from being loaded as anybody's own.
  if (problem === undefined || shipped.includes(await realpath(directory))) return found;
  throw new ExitError(exitCode, "invalid_declaration", placeOf(problem));
}

export function placeOf({ member, line, problem }: PluginProblem): string {
  return `cookie-plugin.json:${line}: ${member}: ${problem}`;
}
