import { readFileSync } from "node:fs";

interface PackageInfo {
  readonly name: string;
  readonly version: string;
}

/** Name and version of this package, from the file beside the built entry. */
export function packageInfo(): PackageInfo {
  const file = new URL("../package.json", import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")) as PackageInfo;
}
