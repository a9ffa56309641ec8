import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { transform } from "esbuild";
import { expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { runScript } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const PAGE = "docs/daemon.md";

function block(heading: string, language: string): string {
  const found = codeBlocks(PAGE, heading).find((each) => each.language === language);
  if (found === undefined) throw new Error(`no ${language} below ${heading}`);
  return found.text;
}

test("[D-009] the page of the daemon: the supervisor hands the token over, a program and a reload use it", async () => {
  const project = await useProject();
  await runScript(project, "say hello");
  await project.writeState("config.toml", fixturePlugin("echo"));
  const runtime = join(project.home, "runtime");
  await mkdir(runtime);
  await linkPackages(project.cwd, ["@cookie-agent/sdk"]);
  const source = block("Attach to it", "ts").replace("{ token:", "{ url: process.env.URL, token:");
  const { code } = await transform(source, { loader: "ts", format: "esm" });
  await writeFile(join(project.cwd, "client.mjs"), code);

  const type = readerShell(project, { XDG_RUNTIME_DIR: runtime });
  const reload = block("Reload a plugin", "sh").replace("linter", 'echo --url "$url"');
  const { exitCode, printed } = await type(`set -e
${block("The token", "sh")}
echo ---
URL="$url" node client.mjs
echo ---
${reload}
kill $!
wait $!
echo "ended: $?"
cat daemon.log`);

  expect(exitCode, printed).toBe(0);
  const [listed = "", program = "", reloaded = ""] = printed.split("---\n");
  const id = /^([0-9a-f-]{36}) /m.exec(listed)?.[1];
  expect(id, printed).toBeDefined();
  expect(program).toContain(String(id));
  expect(reloaded).toMatch(/^echo\n {2}state {5}connected\n/);
  expect(reloaded).toMatch(/ended: 0\n.*info shutting down\n$/s);
});
