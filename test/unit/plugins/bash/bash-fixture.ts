import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "vitest";
import {
  type CallOptions,
  type CallResult,
  type DrivenCall,
  type DriverOptions,
  PluginDriver,
} from "../../../support/plugin-driver.ts";

const ENTRY = fileURLToPath(new URL("../../../../plugins/bash/dist/bash.js", import.meta.url));

export interface BashFixture {
  readonly workspace: string;
  readonly plugin: PluginDriver;
  /** Starts one command. */
  start(command: string, args?: Record<string, unknown>, options?: CallOptions): DrivenCall;
  /** Runs one command to its end. */
  run(
    command: string,
    args?: Record<string, unknown>,
  ): Promise<{ result: CallResult; stdout: string; stderr: string }>;
}

export async function startBash(
  workspace: string,
  options: Omit<DriverOptions, "workspace"> = {},
): Promise<PluginDriver> {
  return PluginDriver.start(ENTRY, { workspace, ...options });
}

/** One plugin process and one workspace for all tests of a file. */
export function useBash(options: Omit<DriverOptions, "workspace"> = {}): BashFixture {
  let workspace = "";
  let plugin: PluginDriver | undefined;
  beforeAll(async () => {
    workspace = await realpath(await mkdtemp(join(tmpdir(), "cookie-bash-")));
    plugin = await startBash(workspace, options);
  });
  afterAll(async () => {
    await plugin?.close();
    await rm(workspace, { recursive: true, force: true });
  });
  const driver = () => {
    if (plugin === undefined) throw new Error("the plugin has not started");
    return plugin;
  };
  const start: BashFixture["start"] = (command, args = {}, callOptions = {}) =>
    driver().call("bash", { command, ...args }, callOptions);
  return {
    get workspace() {
      return workspace;
    },
    get plugin() {
      return driver();
    },
    start,
    run: async (command, args) => {
      const call = start(command, args);
      const result = await call.result;
      return { result, stdout: call.output("stdout"), stderr: call.output("stderr") };
    },
  };
}
