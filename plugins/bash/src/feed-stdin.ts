import { once } from "node:events";
import type { Writable } from "node:stream";

/**
 * Carries input to a command's standard input, no faster than it is read, and ends it with the input (T-076).
 * Returns the function that stops at once, because the command is gone.
 */
export function feedStdin(
  pipe: Writable | null,
  input: AsyncIterable<Uint8Array> | null,
): () => void {
  if (pipe === null || input === null) return () => undefined;
  // A command that does not read its input closes the pipe; that is its right.
  pipe.on("error", () => undefined);
  const stop = new AbortController();
  copyInput(pipe, input, stop.signal).catch(() => undefined);
  return () => {
    stop.abort();
    pipe.destroy();
  };
}

async function copyInput(
  pipe: Writable,
  input: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  for await (const bytes of input) {
    if (!pipe.writable) return;
    if (!pipe.write(bytes)) await once(pipe, "drain", { signal });
  }
  pipe.end();
}
