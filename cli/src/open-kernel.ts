import { homedir } from "node:os";
import type { Kernel, Logger } from "@cookie-agent/kernel";
import { CookieClient } from "@cookie-agent/sdk/client";
import { ExitCode, ExitError } from "./exit-code.ts";
import { firstPartyDirectories, pluginHostEntry } from "./first-party.ts";
import { packageInfo } from "./package-info.ts";

export interface LocalKernelOptions {
  readonly headless: boolean;
  readonly trustWorkspace?: boolean;
  readonly dataDir?: string;
  readonly logger?: Logger;
}

export interface LocalKernel {
  readonly kernel: Kernel;
  readonly client: CookieClient;
  close(): Promise<void>;
}

/** A kernel in this process and a client on it: the same protocol that a daemon speaks, without a socket. */
export async function openLocalKernel(options: LocalKernelOptions): Promise<LocalKernel> {
  const { openKernel } = await import("@cookie-agent/kernel");
  const kernel = await openKernel({
    cwd: process.cwd(),
    homeDir: homeDirectory(),
    env: process.env,
    ...(options.dataDir === undefined ? {} : { dataDir: options.dataDir }),
    firstPartyDirectories: firstPartyDirectories(),
    hostEntry: pluginHostEntry(),
    trust: options.trustWorkspace ? "this_process" : "stored",
    headless: options.headless,
    engineVersion: packageInfo().version,
    ...(options.logger === undefined ? {} : { logger: options.logger }),
  });
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

/** The user's home; without one there is no place for state (C-005). */
export function homeDirectory(): string {
  let home = "";
  try {
    home = homedir();
  } catch {
    // no account entry and no HOME
  }
  if (home === "") {
    throw new ExitError(
      ExitCode.setup,
      "io",
      "there is no home directory; set HOME to the directory that should hold .cookie-agent",
    );
  }
  return home;
}
