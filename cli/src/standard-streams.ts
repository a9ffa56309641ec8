import { ExitCode } from "./exit-code.ts";
import { jsonLine, printable } from "./printable.ts";
import { writeError } from "./report-error.ts";

/** Prints one line on stdout. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(jsonLine(value));
}

/** Prints one line on stderr, free of controls. */
export function printError(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/**
 * A reader that goes away, such as `head`, ends the output and not the command with a stack trace. Output that is lost
 * in another way, as on a full disk, is named and never a success.
 */
export function watchStandardStreams(json: boolean): void {
  process.stderr.on("error", () => undefined);
  let lost = false;
  process.stdout.on("error", ({ code = "unwritable" }: NodeJS.ErrnoException) => {
    if (code === "EPIPE" || lost) return;
    lost = true;
    process.once("exit", () => {
      process.exitCode ||= ExitCode.failure;
    });
    writeError({ code: "stdout", message: `stdout cannot be written (${code})` }, json);
  });
}

/** The help library adds a listener that throws when stdout cannot be written. */
export function dropListenersBut(kept: readonly unknown[]): void {
  for (const listener of process.stdout.listeners("error")) {
    if (!kept.includes(listener)) process.stdout.off("error", listener as (error: Error) => void);
  }
}
