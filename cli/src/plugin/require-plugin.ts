import { PluginName, type PluginStatus } from "@cookie-agent/sdk/protocol";
import { usageError } from "../exit-code.ts";
import { nearestName } from "../nearest-name.ts";

/** The status of the plugin with this name; a name that is not there is a mistake of the command line. */
export function requirePlugin(plugins: readonly PluginStatus[], name: string): PluginStatus {
  const found = plugins.find(({ plugin }) => plugin === name);
  if (found !== undefined) return found;
  const names = plugins.map(({ plugin }) => plugin);
  const near = nearestName(name, names);
  throw usageError(
    near === undefined
      ? `no plugin is called ${name}; there are ${names.join(", ")}`
      : `no plugin is called ${name}; did you mean ${near}?`,
  );
}

/** What can be the name of a plugin, as the user typed it. */
export function requirePluginName(text: string): PluginName {
  const parsed = PluginName.safeParse(text);
  if (parsed.success) return parsed.data;
  throw usageError(`"${text}" is no name of a plugin`);
}
