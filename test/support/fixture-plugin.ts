import { fileURLToPath } from "node:url";

/** The folder of a fixture plugin. */
export function fixtureDirectory(name: string): string {
  return fileURLToPath(new URL(`../fixtures/plugins/${name}`, import.meta.url));
}

/** A `[plugins.<name>]` section that starts a fixture plugin, for config.toml. */
export function fixturePlugin(name: string, keys = ""): string {
  return `[plugins.${name}]\npath = ${JSON.stringify(fixtureDirectory(name))}\n${keys}\n`;
}
