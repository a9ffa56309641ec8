import type { FlagInput } from "@oclif/core/interfaces";
import { type ExitError, usageError } from "./exit-code.ts";
import { nearestName } from "./nearest-name.ts";

/** What the parser's errors carry; told apart by shape. */
interface ParserError {
  readonly message?: string;
  readonly flags?: readonly string[];
  readonly args?: readonly (string | { readonly name: string })[];
}

/** The parser's complaint as one line that names the option and what to do. */
export function describeUsageError(error: unknown, known: FlagInput): ExitError {
  const { message = "", flags, args } = error as ParserError;
  const flag = flags?.[0];
  if (flag !== undefined) return usageError(unknownFlag(flag, Object.keys(known)));
  const arg = args?.[0];
  if (typeof arg === "string") {
    return usageError(`unexpected argument "${arg}"; put quotes around a value with spaces`);
  }
  if (arg !== undefined) return usageError(`the argument <${arg.name}> is missing`);
  return usageError(tidy(message));
}

function unknownFlag(flag: string, known: readonly string[]): string {
  const name = flag.split("=")[0] ?? flag;
  const near = name.startsWith("--") ? nearestName(name.slice(2), known) : undefined;
  const advice =
    near === undefined
      ? "--help lists the options; after -- everything is an argument"
      : `did you mean --${near}?`;
  return `unknown option ${name}; ${advice}`;
}

function tidy(message: string): string {
  const line = message
    .replace(/\s*\n\s*See more help with --help\s*$/, "")
    .replace(/\s*\n\s*/g, " ")
    .replace(/^The following errors? occurred: */, "")
    .replace(/^Parsing (--\S+) +/, "$1: ")
    .trim();
  return line.replace(/^[A-Z]/, (letter) => letter.toLowerCase());
}
