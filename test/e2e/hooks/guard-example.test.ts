import { execFileSync } from "node:child_process";
import { appendFile, cp } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { openTestKernel } from "../../support/open-test-kernel.ts";
import { codeBlocks } from "../guides/code-blocks.ts";

const EXAMPLE = join(import.meta.dirname, "../../../docs/examples/guard");
const bash = (command: string) => ({ name: "bash", arguments: { command } });

test("[E-038] [E-163] [E-204] the guard of the examples blocks the commands that its configuration names", async () => {
  const [toml] = codeBlocks("docs/examples/guard/README.md", "A guard")
    .filter(({ language }) => language === "toml")
    .map(({ text }) => text);
  const kernel = await openTestKernel({
    answers: [
      { calls: [bash("echo fine"), bash("echo git   push"), bash("touch x && rm -rf x")] },
      { text: "ok" },
    ],
    prepare: async (project) => {
      const directory = join(project.home, "guard");
      await cp(EXAMPLE, directory, { recursive: true });
      const outfile = join(directory, "dist/index.js");
      await build({
        entryPoints: [join(EXAMPLE, "index.mjs")],
        outfile,
        bundle: true,
        platform: "node",
        format: "esm",
        logLevel: "warning",
      });
      execFileSync(process.execPath, [outfile, "manifest"], { cwd: directory });
      const config = (toml ?? "").replace("/home/you", project.home);
      await appendFile(join(project.stateDir, "config.toml"), `\n${config}`);
    },
  });
  const { watch, end } = await kernel.run("Hi");
  const ends = watch
    .payloads("tool_call_terminated")
    .sort((a, b) => a.owner.content_index - b.owner.content_index);
  expect(ends.map(({ error, outcome }) => error?.message ?? outcome)).toEqual([
    "completed",
    'Commands with "git push" are not run here. Leave that step to the user.',
    'Commands with "rm -rf" are not run here. Leave that step to the user.',
  ]);
  expect(end.type).toBe("run_completed");
});
