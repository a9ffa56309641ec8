import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { CookieClient } from "@cookie-agent/sdk/client";
import { createLineTransport } from "@cookie-agent/sdk/rpc";
import { onTestFinished } from "vitest";
import { kernelOptions } from "../../support/open-test-kernel.ts";
import type { TempProject } from "../../support/temp-project.ts";

const PROGRAM = fileURLToPath(new URL("kernel-process.mjs", import.meta.url));
const WATCHED_DISK = new URL("watched-disk.mjs", import.meta.url).href;

/** Before an append, in its middle, between it and its sync, right after the sync. */
export const KILL_MOMENTS = ["before", "torn", "written", "synced"] as const;
export type KillMoment = (typeof KILL_MOMENTS)[number];

export interface KernelProcess {
  readonly child: ChildProcess;
  readonly client: CookieClient;
  /** Resolves with the signal that ended it, if it was one. */
  readonly gone: Promise<NodeJS.Signals | null>;
}

/** A kernel in a process of its own; with `kill` it ends itself by SIGKILL at its append of that number. */
export async function startKernelProcess(
  project: TempProject,
  kill?: { readonly at: number; readonly when: KillMoment },
  dataDir?: string,
): Promise<KernelProcess> {
  const plan = kill && JSON.stringify({ directory: project.stateDir, ...kill });
  const child = spawn(process.execPath, ["--import", WATCHED_DISK, PROGRAM], {
    cwd: project.cwd,
    env: {
      ...process.env,
      COOKIE_TEST_KERNEL: JSON.stringify(kernelOptions(project, { ...(dataDir && { dataDir }) })),
      ...(plan && { COOKIE_TEST_KILL: plan }),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once("close", (_code, signal) => resolve(signal));
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await gone;
  });
  child.stdin.on("error", () => undefined);
  const transport = createLineTransport({
    input: child.stdout,
    output: child.stdin,
    onBadLine: ({ reason }) => child.emit("error", new Error(reason)),
  });
  return { child, client: await CookieClient.connect(transport), gone };
}
