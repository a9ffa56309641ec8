import { setFlagsFromString } from "node:v8";
import { claimStandardOutput } from "../plugin/standard-streams.ts";
import { createLineTransport } from "../rpc/line-transport.ts";
import { HostProcess } from "./host-process.ts";

// Left alone, the part of the heap for young objects grows by megabytes that short calls never need.
setFlagsFromString("--semi-space-growth-factor=1");
const output = claimStandardOutput();

// One plugin's stray error must not end its neighbours.
process.on("uncaughtException", report);
process.on("unhandledRejection", report);

const line = createLineTransport({
  input: process.stdin,
  output,
  onBadLine: ({ reason }) => process.stderr.write(`skipped a line from the kernel: ${reason}\n`),
});
await new HostProcess(line, report).run();
process.exit(0);

function report(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`${text}\n`);
}
