import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { CookieError, type Digest } from "@cookie-agent/sdk/protocol";
import type { Transport } from "@cookie-agent/sdk/rpc";
import { PluginProcess, type PluginProcessOptions } from "./plugin-process.ts";

/** The way to one plugin: a process and, inside it, the frames that are this plugin's. */
export interface PluginRoute {
  readonly process: PluginProcess;
  readonly transport: Transport;
  /** True when other plugins live in the same process. */
  readonly shared: boolean;
  /** Lets the plugin leave within `graceMs`, then ends it; bounded by `reapMs` more. */
  end(graceMs: number, reapMs: number): Promise<void>;
  /** Ends the plugin without waiting for its work. */
  abandon(cause: string): Promise<void>;
}

/**
 * Starts a process for one plugin, synchronously when nothing is pinned. Rejects with `integrity_mismatch` when the
 * file on disk is not the pinned one.
 */
export async function openOwnProcess(
  options: PluginProcessOptions,
  pinned: { readonly file: string; readonly sha256: Digest } | null,
): Promise<PluginRoute> {
  if (pinned !== null) await checkPinned(pinned);
  const process = new PluginProcess(options);
  return {
    process,
    transport: process.transport,
    shared: false,
    end: (graceMs, reapMs) => process.stop(graceMs, reapMs),
    abandon: async (cause) => {
      process.kill(cause);
      await process.exit;
    },
  };
}

async function checkPinned(pinned: { readonly file: string; readonly sha256: Digest }) {
  const hash = createHash("sha256");
  try {
    await pipeline(createReadStream(pinned.file), hash);
  } catch (error) {
    throw new CookieError("integrity_mismatch", "the pinned program file cannot be read", {
      cause: error,
    });
  }
  if (hash.digest("hex") !== pinned.sha256) {
    throw new CookieError(
      "integrity_mismatch",
      "the program file is not the one its manifest pins; reinstall the plugin",
    );
  }
}
