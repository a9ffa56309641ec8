import { fileURLToPath } from "node:url";
import { flush, run } from "@oclif/core";
import { describeError } from "./base-command.ts";
import { COMMANDS } from "./commands.ts";
import { normalizeArgv } from "./normalize-argv.ts";

/** Runs one command line; the exit code is left in `process.exitCode`. */
export async function main(argv: readonly string[], packageFile: URL): Promise<void> {
  try {
    await run(normalizeArgv(argv, Object.keys(COMMANDS)), {
      root: fileURLToPath(new URL(".", packageFile)),
    });
    await flush();
  } catch (error) {
    const exit = (error as { oclif?: { exit?: number }; code?: string } | null) ?? {};
    if (exit.code === "EEXIT") {
      process.exitCode = exit.oclif?.exit ?? 0;
      return;
    }
    const { message, exitCode } = describeError(error);
    process.stderr.write(`error: ${message}\n`);
    process.exitCode = exitCode;
  }
}
