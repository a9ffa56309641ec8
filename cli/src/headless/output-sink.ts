import { closeSync, openSync, writeSync } from "node:fs";
import { ExitCode, ExitError } from "../exit-code.ts";

/** Where a run's result goes: stdout, or the file that was named, opened before anything starts. */
export interface OutputSink {
  write(text: string): void;
  close(): void;
}

export function openOutput(file: string | undefined, onClosed: () => void): OutputSink {
  return file === undefined ? stdoutSink(onClosed) : fileSink(file);
}

/** A reader that goes away (EPIPE) ends the output, not the process with a stack trace. */
function stdoutSink(onClosed: () => void): OutputSink {
  let open = true;
  process.stdout.on("error", () => {
    if (open) onClosed();
    open = false;
  });
  return {
    write: (text) => {
      if (open) process.stdout.write(text);
    },
    close: () => undefined,
  };
}

function fileSink(file: string): OutputSink {
  let fd: number;
  try {
    fd = openSync(file, "w", 0o666);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unwritable";
    throw new ExitError(
      ExitCode.setup,
      "output_file",
      `the output file ${file} cannot be written (${why})`,
      error,
    );
  }
  return { write: (text) => void writeSync(fd, text), close: () => closeSync(fd) };
}
