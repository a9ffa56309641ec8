import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runConformance } from "@cookie-agent/sdk/testing";
import { expect, test } from "vitest";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
const EXAMPLES = join(REPOSITORY, "docs/examples");
const names = readdirSync(EXAMPLES).filter((name) => existsSync(join(EXAMPLES, name, "README.md")));
const hasJq = spawnSync("/bin/sh", ["-c", "command -v jq"], { env: {} }).status === 0;
const hasPython = spawnSync("/usr/bin/env", ["python3", "--version"], { env: {} }).status === 0;

test("every example is listed", async () => {
  const list = await readFile(join(EXAMPLES, "README.md"), "utf8");
  const listed = [...list.matchAll(/\]\(([\w-]+)\/README\.md\)/g)].map(([, name]) => name);
  expect(listed.sort()).toEqual([...names].sort());
});

test.for(names)("[E-190] the example %s passes the conformance kit", async (name, { skip }) => {
  const project = await useProject();
  const directory = await build(project, name);
  const report = await runConformance({ directory });
  skip(report.outcome === "skipped", report.results[0]?.reason ?? "");
  const failed = report.results.filter(({ outcome }) => outcome === "failed");
  expect(failed).toEqual([]);
  expect(report.outcome).toBe("passed");
});

test.for([
  ["python-tool", hasPython],
  ["shell-tool", hasJq],
] as const)("[E-180] the page of %s holds", async ([name, present], { skip }) => {
  skip(!present, `${name} needs a program that is not installed`);
  const project = await useProject();
  const directory = await build(project, name);
  const type = readerShell(project);
  const [commands = ""] = shellBlocks(name);
  const { exitCode, printed } = await type(commands.replace(/^cp .*\n/, "set -e\n"), directory);
  expect(exitCode, printed).toBe(0);
  expect(printed).toContain(" 0 failed,");
  expect(printed.trimEnd().split("\n").at(-1)).toMatch(
    name === "python-tool" ? /^\d+: def call$/ : /^\d+ \d+$/,
  );
});

/** What the page has the reader do before the first call: a copy, packages, one bundle, the manifest. */
async function build(project: TempProject, name: string): Promise<string> {
  const directory = join(project.home, name);
  await cp(join(EXAMPLES, name), directory, { recursive: true });
  const entry = ["index.ts", "index.mjs"].find((file) => existsSync(join(directory, file)));
  if (entry === undefined) return directory;
  const page = codeBlocks(`docs/examples/${name}/README.md`);
  const script = page
    .filter(({ language }) => language === "sh")
    .flatMap(({ text }) => text.split("\n"))
    .filter((line) => /^(?:npm init|npx esbuild|node dist)/.test(line));
  await linkPackages(directory, ["@cookie-agent/sdk", "zod", "esbuild"]);
  const built = await readerShell(project)(script.join(" && "), directory);
  expect(built.exitCode, built.printed).toBe(0);
  return directory;
}

function shellBlocks(name: string): string[] {
  return codeBlocks(`docs/examples/${name}/README.md`)
    .filter(({ language }) => language === "sh")
    .map(({ text }) => text);
}
