import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Manifest } from "@cookie-agent/sdk/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTempProject, type TempProject } from "../../support/temp-project.ts";
import { type CodeBlock, codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const GUIDE = "docs/guides/your-first-plugin.md";
const python = findPython();
let project: TempProject;
let type: ReturnType<typeof readerShell>;

beforeEach(async () => {
  project = await createTempProject();
  type = readerShell(project);
});
afterEach(() => project.remove());

describe("the guide to a first plugin", () => {
  test("[E-038] in TypeScript: written, bundled, described by itself, configured, called", async () => {
    const blocks = codeBlocks(GUIDE, "In TypeScript");
    const [setUp, bundle, call] = blocks.filter(({ language }) => language === "sh").map(textOf);
    const directory = join(project.cwd, "echo-plugin");
    expect(setUp).toContain("\nnpm i ~/cookie-agent/sdk zod esbuild\n");
    const made = await type(setUp?.replace(/^npm i .*$/m, "") ?? "");
    expect(made.exitCode, made.printed).toBe(0);
    await linkPackages(directory, ["@cookie-agent/sdk", "zod", "esbuild"]);
    await writeFile(join(directory, "index.ts"), block(blocks, "ts"));

    const bundled = await type(bundle ?? "", directory);
    expect(bundled.exitCode, bundled.printed).toBe(0);
    const manifest = Manifest.parse(
      JSON.parse(await readFile(join(directory, "cookie-plugin.json"), "utf8")),
    );
    expect(manifest).toMatchObject({
      name: "echo",
      runtime: { kind: "node", entry: "dist/index.js" },
      tools: [{ name: "echo", permission_name: "echo" }],
    });

    await project.writeState("config.toml", inPlace(block(blocks, "toml"), project.cwd));
    expect(await type(call ?? "")).toEqual({ exitCode: 0, printed: block(blocks, "") });
    const refused = await type((call ?? "").replace("--allowed-tools plugin:echo", ""));
    expect(refused.exitCode).toBe(3);
  });

  test.skipIf(python === null)(
    "in Python: the file as it stands, started with the kernel, called (skipped without python3)",
    async () => {
      const blocks = codeBlocks(GUIDE, "In 20 lines of Python");
      const source = block(blocks, "python");
      expect(source.split("\n").filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(
        20,
      );
      await project.write("echo.py", source);
      const config = inPlace(block(blocks, "toml"), project.cwd);
      await project.writeState(
        "config.toml",
        config.replace('"/usr/bin/python3"', JSON.stringify(python)),
      );
      const typescript = codeBlocks(GUIDE, "In TypeScript");
      const call = typescript.filter(({ language }) => language === "sh").at(-1)?.text ?? "";
      expect(await type(call)).toEqual({ exitCode: 0, printed: block(typescript, "") });
    },
  );
});

function block(blocks: readonly CodeBlock[], language: string): string {
  const found = blocks.filter((candidate) => candidate.language === language).map(textOf);
  expect(found).toHaveLength(1);
  return found[0] ?? "";
}

function textOf({ text }: CodeBlock): string {
  return text;
}

/** The guide's reader lives in /home/you. */
function inPlace(config: string, directory: string): string {
  expect(config).toContain("/home/you");
  return config.replaceAll("/home/you", directory);
}

function findPython(): string | null {
  const { stdout, status } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], {
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : null;
}
