import { PluginsStatus, RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";
import type { Route } from "./client-connection.ts";
import type { ClientServices } from "./client-services.ts";

export function registerRuntimeMethods(route: Route, services: ClientServices): void {
  route(RuntimeSnapshotGet, async () => ({ snapshot: await services.runtimeSnapshot() }));
  route(PluginsStatus, () => ({ plugins: services.pluginStatus() }));
}
