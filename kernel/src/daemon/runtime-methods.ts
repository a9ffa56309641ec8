import {
  PluginsReload,
  PluginsRestart,
  PluginsStatus,
  RuntimeSnapshotGet,
} from "@cookie-agent/sdk/protocol";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

export function registerRuntimeMethods(route: Route, services: ClientServices): void {
  route(RuntimeSnapshotGet, async () => ({ snapshot: await services.runtimeSnapshot() }), {
    needsId: true,
  });
  route(PluginsStatus, () => ({ plugins: services.pluginStatus() }));
  route(PluginsRestart, async ({ plugin }) => ({ plugin: await services.restartPlugin(plugin) }));
  route(PluginsReload, async ({ plugin }) => ({ plugin: await services.reloadPlugin(plugin) }));
}
