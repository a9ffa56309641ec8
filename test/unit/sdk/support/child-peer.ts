import { type ChildProcess, spawn } from "node:child_process";
import { createLineTransport, type LineTransport } from "@cookie-agent/sdk/rpc";

/** A real process behind a line transport. */
export interface ChildPeer {
  readonly child: ChildProcess;
  readonly transport: LineTransport;
  readonly badLines: { reason: string; head: string }[];
  readonly stderr: () => string;
  /** Exit code, or the signal that ended it. */
  readonly exited: Promise<number | string | null>;
}

export function spawnPeer(file: string): ChildPeer {
  const child = spawn(process.execPath, [file], { stdio: ["pipe", "pipe", "pipe"], env: {} });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString("utf8");
  });
  const badLines: { reason: string; head: string }[] = [];
  const transport = createLineTransport({
    input: child.stdout,
    output: child.stdin,
    onBadLine: (bad) => badLines.push({ ...bad }),
  });
  const exited = new Promise<number | string | null>((resolve) => {
    child.once("close", (code, signal) => resolve(signal ?? code));
  });
  return { child, transport, badLines, stderr: () => stderr, exited };
}
