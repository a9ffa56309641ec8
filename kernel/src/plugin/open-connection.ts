import { CookieError } from "@cookie-agent/sdk/protocol";
import type { HostServices } from "./host-services.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { PluginConnection, PluginConnectionOptions } from "./plugin-connection.ts";
import type { PluginDirectories } from "./plugin-directories.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import type { PluginRoute } from "./plugin-route.ts";

/** What every start of a plugin is made with. */
export interface ConnectionMeans {
  readonly services: HostServices;
  readonly limits: PluginLimits;
  readonly directories: PluginDirectories;
  openRoute(plugin: LoadedPlugin, signal: AbortSignal): Promise<PluginRoute>;
}

export interface OpenedConnection {
  /** To be initialized, or abandoned. */
  readonly connection: PluginConnection;
  readonly paths: Awaited<ReturnType<PluginDirectories["open"]>>;
}

/** A plugin with a process and the directories that this one may use, not introduced yet; a failure leaves no process. */
export async function openConnection(
  { services, limits, directories, openRoute }: ConnectionMeans,
  start: Omit<PluginConnectionOptions, "route" | "services" | "limits">,
  signal: AbortSignal,
): Promise<OpenedConnection> {
  const { plugin, generation } = start;
  // A run that calls no tool needs none of this code.
  const loading = import("./plugin-connection.ts");
  loading.catch(() => undefined);
  // The process starts while its directories are made.
  const opening = openRoute(plugin, signal);
  const making = directories.open(plugin.name, generation);
  const [route, paths] = await bothOrNone(opening, making);
  try {
    const { PluginConnection } = await loading;
    return { connection: new PluginConnection({ ...start, route, services, limits }), paths };
  } catch (error) {
    await route.abandon("the kernel's side of it could not be loaded");
    throw error;
  }
}

/** Both results; when the second fails the first is ended, so no process is left behind. */
async function bothOrNone<T>(
  opening: Promise<PluginRoute>,
  making: Promise<T>,
): Promise<[PluginRoute, T]> {
  const [route, made] = await Promise.allSettled([opening, making]);
  if (route.status === "rejected") throw route.reason;
  if (made.status === "fulfilled") return [route.value, made.value];
  await route.value.abandon("its directories could not be created");
  throw new CookieError("execution_failed", "the plugin's directories could not be created", {
    cause: made.reason,
  });
}
