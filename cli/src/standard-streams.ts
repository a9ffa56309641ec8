import { jsonLine, printable } from "./printable.ts";

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

/** A reader that goes away, such as `head`, ends the output and not the command with a stack trace. */
export function tolerateClosedReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") process.exitCode = 1;
    });
  }
}
