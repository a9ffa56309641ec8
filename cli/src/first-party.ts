import { createRequire } from "node:module";
import { dirname } from "node:path";

const require = createRequire(import.meta.url);

/** The plugins this product ships; standing in this list is what makes them first-party (E-112). */
const FIRST_PARTY_PACKAGES = ["@cookie-agent/plugin-fs", "@cookie-agent/plugin-bash"] as const;

/** Package folders of the shipped plugins, each with its `cookie-plugin.json`. */
export function firstPartyDirectories(): string[] {
  return FIRST_PARTY_PACKAGES.map((name) => dirname(require.resolve(`${name}/cookie-plugin.json`)));
}

/** The bundled entry of a shared plugin host. */
export function pluginHostEntry(): string {
  return require.resolve("@cookie-agent/sdk/host");
}
