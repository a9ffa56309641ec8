import { CookieError } from "../protocol/errors.ts";
import { createLineTransport } from "../rpc/line-transport.ts";
import type { Transport } from "../rpc/transport.ts";
import type { Plugin } from "./define-plugin.ts";
import { PluginServer } from "./plugin-server.ts";
import { findSharedHostSlot, type SharedHostLease } from "./shared-host-slot.ts";
import { claimStandardOutput, finishWriting } from "./standard-streams.ts";
import { writeManifest } from "./write-manifest.ts";

const FLUSH_TIMEOUT_MS = 1000;

/** Of this entry: in a shared host each one brings its own copy of this module. */
let isServing = false;

/**
 * Runs a plugin: the last statement of its entry file.
 *
 * On its own it speaks on standard input and output and leaves the process when the kernel says so or its input ends
 * (E-026). Inside a shared host it takes the host's channel instead (E-014). `node entry.js manifest` writes
 * `cookie-plugin.json` and leaves (E-038).
 */
export async function serve(plugin: Plugin): Promise<void> {
  if (isServing) {
    throw new CookieError(
      "protocol_violation",
      `plugin ${plugin.definition.name}: serve was called twice; an entry file serves one plugin, once`,
    );
  }
  isServing = true;
  const slot = findSharedHostSlot();
  if (slot !== undefined) return serveInHost(plugin, slot.take());
  const entryFile = process.argv[1];
  if (process.argv[2] === "manifest" && entryFile !== undefined) {
    process.stdout.write(`${writeManifest(plugin, entryFile)}\n`);
    return;
  }
  if (process.stdin.isTTY && process.env["COOKIE_PLUGIN_PROTOCOL"] === undefined) {
    process.stderr.write(
      `${plugin.definition.name} is a cookie agent plugin and is started by the agent.\n` +
        "To write its manifest, run it with the argument `manifest`.\n",
    );
    process.exitCode = 2;
    return;
  }
  await serveProcess(plugin);
}

/** Serves a plugin on any transport; resolves when the kernel has ended it. Leaves the process alone. */
export function servePlugin(plugin: Plugin, transport: Transport): Promise<void> {
  return new PluginServer(plugin, transport).run();
}

async function serveInHost(plugin: Plugin, lease: SharedHostLease): Promise<void> {
  try {
    await servePlugin(plugin, lease.transport);
  } finally {
    lease.release();
  }
}

async function serveProcess(plugin: Plugin): Promise<void> {
  const output = claimStandardOutput();
  const transport = createLineTransport({
    input: process.stdin,
    output,
    onBadLine: ({ reason }) => process.stderr.write(`skipped a line from the kernel: ${reason}\n`),
  });
  try {
    await servePlugin(plugin, transport);
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : error}\n`);
  }
  await finishWriting(output, FLUSH_TIMEOUT_MS);
  // Handles that a tool left open must not keep a dismissed plugin alive.
  process.exit();
}
