import type { CookieClient } from "@cookie-agent/sdk/client";
import { type PluginStatus, PluginsStatus, RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";

/** The status of every plugin, once those that start with the kernel have introduced themselves. */
export async function readStatuses(client: CookieClient): Promise<readonly PluginStatus[]> {
  // Answered only then.
  await client.request(RuntimeSnapshotGet, {});
  return (await client.request(PluginsStatus, {})).plugins;
}
