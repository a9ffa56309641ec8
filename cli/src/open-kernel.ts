import { statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute } from "node:path";
import type { Kernel, Logger, TriedPlugin } from "@cookie-agent/kernel";
import { CookieClient } from "@cookie-agent/sdk/client";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { firstPartyDirectories, pluginHostEntry } from "./first-party.ts";
import { packageInfo } from "./package-info.ts";
import { keepYoungGenerationSmall } from "./young-generation.ts";

export interface LocalKernelOptions {
  readonly trustWorkspace?: boolean;
  /** Absolute. */
  readonly dataDir?: string;
  /** Takes what plugins write to stderr and other operational news; nobody reads it when absent. */
  readonly logger?: Logger;
  readonly tryPlugin?: TriedPlugin;
  /** Somebody may come who can answer an approval; no command but the daemon waits for that. */
  readonly attended?: boolean;
}

export interface LocalKernel {
  readonly kernel: Kernel;
  readonly client: CookieClient;
  close(): Promise<void>;
}

/** A kernel in this process. */
export async function openOwnKernel(options: LocalKernelOptions = {}): Promise<Kernel> {
  keepYoungGenerationSmall();
  const { openKernel } = await import("@cookie-agent/kernel");
  return openKernel({
    cwd: workingDirectory(),
    homeDir: homeDirectory(),
    env: process.env,
    ...(options.dataDir === undefined ? {} : { dataDir: options.dataDir }),
    firstPartyDirectories: firstPartyDirectories(),
    hostEntry: pluginHostEntry(),
    trust: options.trustWorkspace ? "this_process" : "stored",
    headless: !options.attended,
    engineVersion: packageInfo().version,
    ...(options.logger === undefined ? {} : { logger: options.logger }),
    ...(options.tryPlugin === undefined ? {} : { tryPlugin: options.tryPlugin }),
  });
}

/** The same with a client on it: the same protocol that a daemon speaks, without a socket. */
export async function openLocalKernel(options: LocalKernelOptions = {}): Promise<LocalKernel> {
  const kernel = await openOwnKernel(options);
  try {
    const client = await CookieClient.connect(kernel.connect());
    return {
      kernel,
      client,
      async close() {
        client.close();
        await kernel.close();
      },
    };
  } catch (error) {
    await kernel.close();
    throw error;
  }
}

/** A kernel for one command, closed when its work is done. */
export async function withLocalKernel<T>(
  options: LocalKernelOptions,
  work: (local: LocalKernel) => Promise<T>,
): Promise<T> {
  const local = await openLocalKernel(options);
  try {
    return await work(local);
  } finally {
    await local.close();
  }
}

/** The user's home; without one there is no place for state (C-005). */
export function homeDirectory(): string {
  let home = "";
  try {
    home = homedir();
  } catch {
    // no account entry and no HOME
  }
  if (!isAbsolute(home)) {
    throw new CookieError(
      "io",
      "there is no home directory; set HOME to the absolute path of the directory that should hold .cookie-agent",
    );
  }
  // Making missing parents below a place like /proc never ends, so the home itself is not made.
  if (!statSync(home, { throwIfNoEntry: false })?.isDirectory()) {
    throw new CookieError("io", `the home directory ${home} is not a directory; set HOME to yours`);
  }
  return home;
}

export function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    throw new CookieError("io", "the working directory no longer exists; change to another one", {
      cause: error,
    });
  }
}
