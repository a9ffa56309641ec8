import type { PluginStatus, RuntimeSnapshot } from "@cookie-agent/sdk/protocol";
import type { PluginBus } from "../event/plugin-bus.ts";
import type { SessionRegistry } from "../session/session-registry.ts";
import type { UsageArchive } from "../store/usage-archive.ts";
import type { OutputHub } from "../tool/output-hub.ts";

/** What the clients' side calls; filled in by the composition root. */
export interface ClientServices {
  readonly sessions: SessionRegistry;
  readonly outputs: OutputHub;
  readonly bus: PluginBus;
  readonly usageArchive: UsageArchive;
  runtimeSnapshot(): Promise<RuntimeSnapshot>;
  pluginStatus(): PluginStatus[];
  /** Rejects with `plugin_missing` when there is no such plugin. */
  restartPlugin(plugin: string): Promise<PluginStatus>;
  /** Rejects with `plugin_missing`, or with the error of a configuration that cannot be loaded. */
  reloadPlugin(plugin: string): Promise<PluginStatus>;
}
