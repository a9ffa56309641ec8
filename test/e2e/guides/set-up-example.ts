import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { TempProject } from "../../support/temp-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
const INSTALL = "npm i ~/cookie-agent/sdk zod esbuild\n";

export interface Example {
  /** Types lines into a shell that stands in the project. */
  readonly type: ReturnType<typeof readerShell>;
  /** The configuration that the README gives, for this home. */
  readonly config: string;
  /** The commands of "Use it", and what they print. */
  readonly use: string;
  readonly printed: string;
}

/** Follows "Set it up" in the README of an example; packages are linked in place of being installed. */
export async function setUpExample(name: string, project: TempProject): Promise<Example> {
  const blocks = codeBlocks(`docs/examples/${name}/README.md`);
  const [setUp = "", ...commands] = ofLanguage(blocks, "sh");
  const [config = ""] = ofLanguage(blocks, "toml");
  const [printed = ""] = ofLanguage(blocks, "");
  await symlink(REPOSITORY, join(project.home, "cookie-agent"));
  const type = readerShell(project);
  const [first = "", ...rest] = setUp.split(INSTALL);
  await run(type, first);
  const folder = /^cp -r \S+ ~\/(\S+)/m.exec(first)?.[1] ?? "";
  const directory = join(project.home, folder);
  for (const after of rest) {
    await linkPackages(directory, ["@cookie-agent/sdk", "zod", "esbuild"]);
    await run(type, after, directory);
  }
  return {
    type,
    config: config.replaceAll("/home/you", project.home),
    use: commands.at(-1) ?? "",
    printed,
  };
}

async function run(type: Example["type"], script: string, cwd?: string): Promise<void> {
  const { exitCode, printed } = await type(script, cwd);
  expect(exitCode, printed).toBe(0);
}

function ofLanguage(blocks: ReturnType<typeof codeBlocks>, wanted: string): string[] {
  return blocks.filter(({ language }) => language === wanted).map(({ text }) => text);
}
