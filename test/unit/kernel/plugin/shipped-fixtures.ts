import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Manifest } from "@cookie-agent/sdk/protocol";
import type { FirstPartyFacts } from "../../../../kernel/src/config/first-party.ts";
import { FIXTURES, tempDirectory } from "./open-host.ts";

/** Fixture plugins as if they were shipped, all in one group. */
export async function shipped(
  names: readonly string[],
  change: (manifest: Record<string, unknown>, name: string) => void = () => undefined,
): Promise<FirstPartyFacts[]> {
  const parent = await tempDirectory();
  await cp(join(FIXTURES, "wire.mjs"), join(parent, "wire.mjs"));
  await cp(join(FIXTURES, "unloadable.mjs"), join(parent, "unloadable.mjs"));
  return Promise.all(
    names.map(async (name) => {
      const directory = join(parent, name);
      await cp(join(FIXTURES, name), directory, { recursive: true });
      const file = join(directory, "cookie-plugin.json");
      const manifest = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
      delete manifest["env"];
      delete manifest["restart"];
      manifest["runtime"] = { kind: "node", entry: "main.mjs", group: "core" };
      change(manifest, name);
      await writeFile(file, JSON.stringify(manifest));
      return { id: name, directory, manifest: Manifest.parse(manifest) };
    }),
  );
}
