import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useProject } from "../../support/use-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const GUIDE = "docs/guides/authoring-plugins.md";

test("[E-038] [E-190] every command of the guide to a tested plugin, in its order, in an empty home", async () => {
  const project = await useProject();
  const type = readerShell(project);
  const directory = join(project.cwd, "word-count");
  const blocks = codeBlocks(GUIDE);
  let cwd = project.cwd;
  let printed = "";
  const typed: string[] = [];
  for (const { language, text } of blocks) {
    if (language === "toml") {
      await project.writeState("config.toml", text.replace("/home/you", project.cwd));
    } else if (language === "ts") {
      // The guide's second test, beside that of the template.
      const file = join(directory, "test/plugin.test.ts");
      const [, body = ""] = text.split('import { plugin } from "../src/plugin.ts";\n');
      await writeFile(file, `${await readFile(file, "utf8")}${body}`);
    } else if (language === "") {
      expect(printed).toBe(text);
    } else {
      for (const line of text.trimEnd().split("\n")) {
        typed.push(line);
        if (line.startsWith("cd ")) cwd = join(cwd, line.slice(3));
        else if (line === "npm install") {
          await linkPackages(cwd, ["@cookie-agent/sdk", "zod", "esbuild"]);
        } else {
          // What a slow call prints meanwhile shows on stderr too.
          const shown = line.startsWith("cookie plugin call") ? `${line} 2>/dev/null` : line;
          const result = await type(shown, cwd);
          expect(result.exitCode, `${line}\n${result.printed}`).toBe(0);
          printed = result.printed;
          if (line === "npm test") expect(printed).toMatch(/^[#ℹ] pass 2$/m);
        }
      }
    }
  }
  expect(
    typed.filter((line) => line.startsWith("cookie plugin")).map((line) => line.split(" ")[2]),
  ).toEqual(["init", "check", "test", "call", "list", "status", "logs", "trust"]);
});
