import { isCookieError } from "@cookie-agent/sdk/protocol";
import { Command, Flags } from "@oclif/core";
import { ExitCode, ExitError } from "./exit-code.ts";

/** What every command has: `--json`, one-line errors, exit codes 0, 1 and 2 (C 7.1). */
export abstract class BaseCommand extends Command {
  static override baseFlags = {
    json: Flags.boolean({ description: "print one JSON document", default: false }),
  };

  /** Ends the command with an error: one line on stderr, no stack unless COOKIE_DEBUG=1. */
  protected override async catch(error: Error & { exitCode?: number }): Promise<never> {
    const described = describeError(error);
    if (this.argv.includes("--json")) {
      process.stderr.write(
        `${JSON.stringify({ error: { code: described.code, message: described.message } })}\n`,
      );
    } else {
      process.stderr.write(`error: ${described.message}\n`);
    }
    if (process.env["COOKIE_DEBUG"] === "1") process.stderr.write(`${error.stack ?? ""}\n`);
    return this.exit(described.exitCode);
  }

  protected print(text: string): void {
    process.stdout.write(`${text}\n`);
  }

  protected printJson(value: unknown): void {
    process.stdout.write(`${JSON.stringify(value)}\n`);
  }
}

export interface DescribedError {
  readonly code: string;
  readonly message: string;
  readonly exitCode: number;
}

/** Code, one-line text and exit code of whatever ended a command. */
export function describeError(error: unknown): DescribedError {
  if (error instanceof ExitError) {
    return { code: error.code, message: error.message, exitCode: error.exitCode };
  }
  if (isCookieError(error)) {
    return { code: error.code, message: error.message, exitCode: ExitCode.failure };
  }
  const message = error instanceof Error ? error.message : String(error);
  const oclif = (error as { oclif?: { exit?: number } } | null)?.oclif;
  if (oclif !== undefined) {
    return { code: "usage", message: firstLine(message), exitCode: oclif.exit ?? ExitCode.usage };
  }
  return { code: "internal", message: firstLine(message), exitCode: ExitCode.failure };
}

function firstLine(message: string): string {
  return message
    .replace(/\s*\n\s*/g, " ")
    .replace(/ See more help with --help\s*$/, "")
    .trim();
}
