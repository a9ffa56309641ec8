import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCookie } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const GUIDE = "docs/guides/migrating.md";
const after = codeBlocks(GUIDE).filter(({ leadIn }) => /after:$|^After/i.test(leadIn));
const block = (language: string) => after.find((found) => found.language === language)?.text ?? "";

test("both plugins of the migration guide work as they stand there", async () => {
  const project = await useProject();
  const build = async (name: string, source: string) => {
    const directory = join(project.home, name);
    await mkdir(directory);
    await writeFile(join(directory, "index.ts"), source);
    await writeFile(join(directory, "package.json"), '{"type":"module"}');
    await linkPackages(directory, ["@cookie-agent/sdk", "zod", "esbuild"]);
    const built = await readerShell(project)(
      "npx esbuild index.ts --bundle --platform=node --format=esm --outfile=dist/index.js && node dist/index.js manifest",
      directory,
    );
    expect(built.exitCode, built.printed).toBe(0);
  };
  await build("weather", block("ts"));
  await build("no_force", block("js"));
  const guard = `[plugins.no_force]\npath = "${project.home}/no_force"\n`;
  const config = block("toml").replace("/home/you", project.home);
  await project.writeState("config.toml", `${config}${guard}`);
  const calls = [
    'call forecast {"city":"Ulm"}',
    'call bash {"command":"echo --force"}',
    'call bash {"command":"echo softly"}',
  ];
  const allowed = ["--allowed-tools", "plugin:forecast,bash"];
  const run = await runCookie(
    project,
    ["run", "-m", "offline/script", ...allowed, calls.join("\n")],
    { env: { WEATHER_KEY: "k" } },
  );
  expect(run).toMatchObject({ exitCode: 0, stderr: "" });
  const [, forecast, forced, soft] = run.stdout.split("\n");
  expect(forecast).toBe("- forecast: ok: Ulm: rain");
  expect(forced).toMatch(/^- bash: failed: .*no force/);
  expect(soft).toMatch(/^- bash: ok: \[stdout\] softly/);
});
