/** Exit codes of the commands that make calls (C 7.3); every other command uses the first three. */
export const ExitCode = {
  success: 0,
  failure: 1,
  usage: 2,
  permission: 3,
  cancelled: 4,
  setup: 5,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** An error that already knows the exit code it leads to. */
export class ExitError extends Error {
  override readonly name = "ExitError";
  readonly exitCode: ExitCode;
  readonly code: string;

  constructor(exitCode: ExitCode, code: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
    this.code = code;
  }
}

/** The command line itself is wrong; the message names the option and what it takes. */
export function usageError(message: string): ExitError {
  return new ExitError(ExitCode.usage, "usage", message);
}
