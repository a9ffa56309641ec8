import { Console } from "node:console";
import type { Writable } from "node:stream";

/**
 * Takes standard output for protocol frames. Whatever else writes to it, `console.log` included, lands on standard
 * error, because one stray line would be a bad line on the wire (E-001, E-011).
 */
export function claimStandardOutput(): Writable {
  const output = process.stdout;
  Object.defineProperty(process, "stdout", { configurable: true, get: () => process.stderr });
  globalThis.console = new Console({ stdout: process.stderr, stderr: process.stderr });
  return output;
}

/** Waits until the stream wrote what it holds, at most `timeoutMs`: a peer that reads no more must not keep us alive. */
export async function finishWriting(output: Writable, timeoutMs: number): Promise<void> {
  if (output.writableFinished || output.destroyed) return;
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
    output.once("finish", resolve);
    output.once("close", resolve);
    output.end();
  });
  clearTimeout(timer);
}
