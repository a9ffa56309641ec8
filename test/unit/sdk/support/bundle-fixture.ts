import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { build } from "esbuild";

/** Bundles TypeScript entries from source into a temporary package, so that real processes can run them. */
export async function bundleEntries(
  entries: Readonly<Record<string, string>>,
): Promise<{ directory: string; file(name: string): string; remove(): Promise<void> }> {
  const directory = await mkdtemp(path.join(tmpdir(), "cookie-sdk-"));
  await writeFile(path.join(directory, "package.json"), '{"type":"module"}\n');
  await build({
    entryPoints: { ...entries },
    outdir: path.join(directory, "dist"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["source"],
    banner: {
      js: "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);",
    },
    logLevel: "warning",
  });
  return {
    directory,
    file: (name) => path.join(directory, "dist", `${name}.js`),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
