import { existsSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { CookieError } from "../protocol/errors.ts";
import { createManifest } from "./create-manifest.ts";
import type { Plugin } from "./define-plugin.ts";

/**
 * Writes `cookie-plugin.json` into the package of `entryFile`, the nearest folder upward with a `package.json` (E-030,
 * E-038), and returns its path.
 */
export function writeManifest(plugin: Plugin, entryFile: string): string {
  const entry = realpathSync(entryFile);
  const directory = findPackageDirectory(path.dirname(entry));
  const { group } = plugin.definition;
  const manifest = createManifest(plugin, {
    kind: "node",
    entry: path.relative(directory, entry).split(path.sep).join("/"),
    ...(group === undefined ? {} : { group }),
  });
  const file = path.join(directory, "cookie-plugin.json");
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
  return file;
}

function findPackageDirectory(start: string): string {
  for (let directory = start; ; directory = path.dirname(directory)) {
    if (existsSync(path.join(directory, "package.json"))) return directory;
    if (path.dirname(directory) === directory) {
      throw new CookieError(
        "invalid_declaration",
        "no package.json in the folders above the plugin's entry; add one",
      );
    }
  }
}
