import { ExitCode, ExitError } from "./exit-code.ts";
import { jsonLine, printable, printableLines } from "./printable.ts";

export interface DescribedError {
  readonly code: string;
  readonly message: string;
  readonly exitCode: ExitCode;
}

/** Code, one-line text and exit code of whatever ended a command. */
export function describeError(error: unknown): DescribedError {
  const message = oneLine(error instanceof Error ? error.message : String(error));
  if (error instanceof ExitError) return { code: error.code, message, exitCode: error.exitCode };
  const code = (error as { code?: unknown } | null)?.code;
  return {
    code: typeof code === "string" && /^[a-z_]+$/.test(code) ? code : "internal",
    message: message === "" ? "internal error" : message,
    exitCode: ExitCode.failure,
  };
}

/** One line on stderr, or one JSON document; a stack only with COOKIE_DEBUG=1 (C 7.1). */
export function reportError(error: unknown, json: boolean): ExitCode {
  const described = describeError(error);
  writeError(described, json);
  if (process.env["COOKIE_DEBUG"] === "1" && error instanceof Error) {
    process.stderr.write(`${printableLines(error.stack ?? "")}\n`);
  }
  return described.exitCode;
}

export function writeError(
  { code, message }: Pick<DescribedError, "code" | "message">,
  json: boolean,
): void {
  process.stderr.write(
    json ? jsonLine({ error: { code, message } }) : `error: ${oneLine(message)}\n`,
  );
}

function oneLine(text: string): string {
  return printable(text.replace(/\s*[\r\n]\s*/g, " ")).trim();
}
