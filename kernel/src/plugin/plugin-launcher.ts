import { CookieError } from "@cookie-agent/sdk/protocol";
import type { Logger } from "../support/logger.ts";
import { childEnvironment, type EnvironmentSource } from "./child-environment.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import type { PluginProcess, PluginProcessOptions } from "./plugin-process.ts";
import { openOwnProcess, type PluginRoute } from "./plugin-route.ts";
import { SharedHost } from "./shared-host.ts";
import { NO_CLAIMS } from "./tier-claims.ts";

export interface PluginLauncherOptions {
  /** Entry file of the shared plugin host. */
  readonly hostEntry: string;
  readonly workspaceRoot: string;
  readonly logger: Logger;
  readonly limits: PluginLimits;
  /** As of now: a reload may name further secrets. */
  environment(): EnvironmentSource;
  workspaceStillTrusted(): Promise<boolean>;
}

/** The processes of all plugins: starts them, shares those of a group, and leaves none behind. */
export class PluginLauncher {
  readonly #options: PluginLauncherOptions;
  readonly #hosts = new Map<string, SharedHost>();
  readonly #processes = new Set<PluginProcess>();

  constructor(options: PluginLauncherOptions) {
    this.#options = options;
  }

  /** False while a process that the plugin would share is there already. */
  needsProcess({ launch }: LoadedPlugin): boolean {
    return launch?.kind !== "shared" || this.#hosts.get(launch.group)?.running !== true;
  }

  /** A way to the plugin, in a process of its own or that of its group. Rejects when it must not or cannot run. */
  async open(plugin: LoadedPlugin, signal: AbortSignal): Promise<PluginRoute> {
    const { launch } = plugin;
    if (launch === null) throw new CookieError("plugin_unavailable", "the plugin has no program");
    if (plugin.source === "workspace") {
      const { failure } = await this.checkTrust(plugin);
      if (failure !== null) throw failure;
      signal.throwIfAborted();
    }
    const route =
      launch.kind === "own"
        ? await openOwnProcess(this.#ownProcess(plugin, launch), launch.pinned)
        : await this.#sharedHost(plugin, launch.group).open(
            { plugin: plugin.name, entry: launch.entry, sha256: launch.sha256 },
            plugin.startupTimeoutMs,
            signal,
          );
    this.#own(route.process);
    return route;
  }

  /** The plugin as it is, or failed when the workspace that names it is no longer the trusted one. */
  async checkTrust(plugin: LoadedPlugin): Promise<LoadedPlugin> {
    if (plugin.source !== "workspace" || plugin.failure !== null) return plugin;
    if (await this.#options.workspaceStillTrusted()) return plugin;
    const failure = new CookieError(
      "integrity_mismatch",
      "the workspace's .cookie-agent changed since it was trusted; run `cookie trust` to review it, then start anew",
    );
    return { ...plugin, claims: NO_CLAIMS, launch: null, failure };
  }

  /** Ends whatever is still there. */
  close(): void {
    for (const child of this.#processes) child.kill("the kernel is closing");
  }

  #own(child: PluginProcess): void {
    if (this.#processes.has(child)) return;
    if (this.#processes.size === 0) process.on("exit", this.#onProcessExit);
    this.#processes.add(child);
    void child.exit.then(() => {
      this.#processes.delete(child);
      if (this.#processes.size === 0) process.off("exit", this.#onProcessExit);
    });
  }

  #ownProcess(
    plugin: LoadedPlugin,
    launch: { readonly command: string; readonly args: readonly string[] },
  ): PluginProcessOptions {
    return {
      label: plugin.name,
      command: launch.command,
      args: launch.args,
      cwd: plugin.cwd,
      env: childEnvironment(this.#options.environment(), plugin.claims.inheritEnv, plugin.env),
      badLines: this.#options.limits.ownBadLines,
      logger: this.#options.logger,
    };
  }

  #sharedHost(plugin: LoadedPlugin, group: string): SharedHost {
    const known = this.#hosts.get(group);
    if (known !== undefined) return known;
    const host = new SharedHost({
      process: {
        label: `host ${group}`,
        command: process.execPath,
        args: [this.#options.hostEntry],
        cwd: this.#options.workspaceRoot,
        env: childEnvironment(this.#options.environment(), plugin.claims.inheritEnv, {}),
        badLines: this.#options.limits.sharedBadLines,
        logger: this.#options.logger,
      },
      reapMs: this.#options.limits.reapMs,
    });
    this.#hosts.set(group, host);
    return host;
  }

  /** Groups of their own do not die with this process, so the last thing it does is to end them. */
  readonly #onProcessExit = (): void => {
    for (const child of this.#processes) child.kill("the kernel ended");
  };
}
