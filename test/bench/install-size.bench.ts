import { execFileSync } from "node:child_process";
import { lstatSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { BenchReport } from "./support/bench-report.ts";

const REPOSITORY = join(import.meta.dirname, "../..");
const PACKAGES = ["sdk", "kernel", "plugins/fs", "plugins/bash", "cli"];
const report = new BenchReport("install-size");

afterAll(() => report.finish());

test("H: what an installation from the packed packages takes on disk", async () => {
  const root = await mkdtemp(join(tmpdir(), "cookie-bench-install-"));
  try {
    const target = join(root, "target");
    await mkdir(target);
    await writeFile(join(target, "package.json"), '{ "private": true }\n');
    const tarballs = PACKAGES.map((directory) => {
      const options = { cwd: join(REPOSITORY, directory), encoding: "utf8" } as const;
      const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", root];
      const [packed] = JSON.parse(execFileSync("npm", args, options)) as { filename: string }[];
      return join(root, packed?.filename ?? "");
    });
    const quiet = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
    execFileSync("npm", ["install", ...quiet, ...tarballs], { cwd: target, stdio: "pipe" });
    const values = new Map([["cookie", [diskBytes(join(target, "node_modules")) / 1e6]]]);
    const what = "installed, MB on disk";
    const { ours } = report.add({ row: "H", what, digits: 0, values, bar: 150 });
    expect.soft(ours).toBeLessThanOrEqual(150);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

/** Blocks that files and folders take, as `du` counts them. */
function diskBytes(path: string): number {
  const entry = lstatSync(path);
  const own = entry.blocks * 512;
  if (!entry.isDirectory()) return own;
  return readdirSync(path).reduce((sum, name) => sum + diskBytes(join(path, name)), own);
}
