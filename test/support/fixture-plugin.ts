import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of a fixture plugin. */
export function fixtureDirectory(name: string): string {
  return fileURLToPath(new URL(`../fixtures/plugins/${name}`, import.meta.url));
}

/** A `[plugins.<name>]` section that starts a fixture plugin, for config.toml. */
export function fixturePlugin(name: string, keys = ""): string {
  return `[plugins.${name}]\npath = ${JSON.stringify(fixtureDirectory(name))}\n${keys}\n`;
}

/** The same for a plugin that the user trusts, and grants more. */
export function trustedPlugin(name: string, grants: readonly string[] = []): string {
  const manifest = readFileSync(join(fixtureDirectory(name), "cookie-plugin.json"));
  const integrity = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
  const keys = `trust = "trusted"\nintegrity = "${integrity}"\ngrants = ${JSON.stringify(grants)}`;
  return fixturePlugin(name, keys);
}
