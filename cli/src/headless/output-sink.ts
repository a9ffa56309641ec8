import { closeSync, openSync, writeFileSync } from "node:fs";
import { ExitCode, ExitError } from "../exit-code.ts";

/** Where a run's result goes: stdout, or the file that was named, opened before anything starts. */
export interface OutputSink {
  /** True when a person sees it as it is. */
  readonly isTerminal: boolean;
  write(text: string): void;
  close(): void;
}

/** @param onClosed Called once when nobody reads stdout any more. */
export function openOutput(file: string | undefined, onClosed: () => void): OutputSink {
  return file === undefined ? stdoutSink(onClosed) : fileSink(file);
}

function stdoutSink(onClosed: () => void): OutputSink {
  let open = true;
  process.stdout.on("error", () => {
    if (open) onClosed();
    open = false;
  });
  return {
    isTerminal: process.stdout.isTTY === true,
    write: (text) => {
      if (open) process.stdout.write(text);
    },
    close: () => undefined,
  };
}

function fileSink(file: string): OutputSink {
  const failure = (exitCode: ExitCode, error: unknown): ExitError => {
    const why = (error as NodeJS.ErrnoException).code ?? "unwritable";
    const message = `--output-file: ${file} cannot be written (${why})`;
    return new ExitError(exitCode, "output_file", message, error);
  };
  let fd: number;
  try {
    fd = openSync(file, "w", 0o666);
  } catch (error) {
    throw failure(ExitCode.setup, error);
  }
  return {
    isTerminal: false,
    write(text) {
      try {
        writeFileSync(fd, text);
      } catch (error) {
        throw failure(ExitCode.failure, error);
      }
    },
    close: () => closeSync(fd),
  };
}
