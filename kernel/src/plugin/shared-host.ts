import {
  type Digest,
  isCookieError,
  ProcessAttach,
  ProcessDetach,
} from "@cookie-agent/sdk/protocol";
import { Connection, type Transport } from "@cookie-agent/sdk/rpc";
import { crashError, PluginProcess, type PluginProcessOptions } from "./plugin-process.ts";
import type { PluginRoute } from "./plugin-route.ts";

export interface HostMember {
  readonly plugin: string;
  readonly entry: string;
  readonly sha256: Digest | null;
}

export interface SharedHostOptions {
  readonly process: PluginProcessOptions;
  /** How long a killed process may take to be reaped. */
  readonly reapMs: number;
}

interface LiveHost {
  readonly process: PluginProcess;
  readonly control: Connection;
  readonly members: Set<string>;
}

/**
 * The one process of a `runtime.group` (E-014, E-058): started with its first member, ended with its last. Members
 * come and go by name; when the process ends, all of them are lost together.
 */
export class SharedHost {
  readonly #options: SharedHostOptions;
  readonly #leaving = new Map<string, Promise<void>>();
  #live: LiveHost | undefined;

  constructor(options: SharedHostOptions) {
    this.#options = options;
  }

  /** True while a new member costs no process start. */
  get running(): boolean {
    return this.#live !== undefined;
  }

  /** Loads a plugin's entry into the process, which is started synchronously when there is none. */
  async open(member: HostMember, timeoutMs: number, signal: AbortSignal): Promise<PluginRoute> {
    await this.#leaving.get(member.plugin);
    this.#live ??= this.#start();
    const live = this.#live;
    live.members.add(member.plugin);
    // Open before the entry is loaded: its first frame may come with the answer.
    const transport = live.process.transport.channel(member.plugin);
    const leave = (graceMs: number, reapMs: number) =>
      this.#leave(live, member.plugin, transport, graceMs, reapMs);
    try {
      await live.control.request(ProcessAttach, { ...member }, { timeoutMs, signal });
    } catch (error) {
      // How the process ended is known only a moment after its pipe has closed.
      const reason = isCookieError(error, "plugin_crashed")
        ? crashError(member.plugin, await live.process.exit)
        : error;
      await leave(0, this.#options.reapMs);
      throw reason;
    }
    return {
      process: live.process,
      transport,
      shared: true,
      end: leave,
      abandon: () => leave(0, this.#options.reapMs),
    };
  }

  #start(): LiveHost {
    const process = new PluginProcess(this.#options.process);
    const control = new Connection({
      transport: process.transport.channel("$host"),
      side: "kernel",
      onClose: () => process.expectExit(),
    });
    control.listen();
    const live: LiveHost = { process, control, members: new Set() };
    void process.exit.then(() => {
      if (this.#live === live) this.#live = undefined;
    });
    return live;
  }

  async #leave(
    live: LiveHost,
    plugin: string,
    transport: Transport,
    graceMs: number,
    reapMs: number,
  ): Promise<void> {
    live.members.delete(plugin);
    const left =
      live.members.size === 0
        ? this.#end(live, graceMs, reapMs)
        : live.control
            .request(ProcessDetach, { plugin }, { timeoutMs: Math.max(graceMs, 1000) })
            .then(
              () => undefined,
              () => undefined,
            );
    this.#leaving.set(plugin, left);
    await left;
    transport.close();
    if (this.#leaving.get(plugin) === left) this.#leaving.delete(plugin);
  }

  async #end(live: LiveHost, graceMs: number, reapMs: number): Promise<void> {
    // From here on a new member starts a new process.
    if (this.#live === live) this.#live = undefined;
    await live.process.stop(graceMs, reapMs);
  }
}
