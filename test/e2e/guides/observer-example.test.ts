import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Manifest } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { useProject } from "../../support/use-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { linkPackages, readerShell } from "./reader-shell.ts";

const EXAMPLE = "docs/examples/observer";
const REPOSITORY = join(import.meta.dirname, "../../..");

test("[E-038] [E-140] the observer of the examples is bundled, described by itself, and measures a run", async () => {
  const project = await useProject();
  const type = readerShell(project);
  const blocks = codeBlocks(`${EXAMPLE}/README.md`);
  const [setUp = "", bundle = "", run = ""] = blocks
    .filter(({ language }) => language === "sh")
    .map(({ text }) => text);
  const directory = join(project.cwd, "observer");
  await cp(join(REPOSITORY, EXAMPLE), directory, { recursive: true });
  const rest = setUp.replace(/^cp -r \S+ \. && cd observer$/m, "").replace(/^npm i .*$/m, "");
  expect(rest.trim()).toBe("npm init -y && npm pkg set type=module");
  const made = await type(rest, directory);
  expect(made.exitCode, made.printed).toBe(0);
  await linkPackages(directory, ["@cookie-agent/sdk", "zod", "esbuild"]);
  const bundled = await type(bundle, directory);
  expect(bundled.exitCode, bundled.printed).toBe(0);
  const manifest = Manifest.parse(
    JSON.parse(await readFile(join(directory, "cookie-plugin.json"), "utf8")),
  );
  expect(manifest.capabilities).toEqual({
    subscribe_events: [
      "tool_call_started",
      "tool_call_terminated",
      "run_completed",
      "run_failed",
      "run_cancelled",
      "run_interrupted",
    ],
    publish_bus: true,
  });

  const config = blocks.find(({ language }) => language === "toml")?.text ?? "";
  await project.writeState(
    "config.toml",
    config
      .replace("/home/you/observer", directory)
      .replace("/home/you/metrics.json", join(project.home, "metrics.json")),
  );
  for (const times of [1, 2]) {
    const { printed } = await type(run);
    const metrics: unknown = JSON.parse(printed.slice(printed.indexOf("{\n")));
    const measured = { totalMs: expect.any(Number), longestMs: expect.any(Number) };
    expect(metrics).toEqual({
      runs: { completed: times },
      tools: {
        bash: { calls: times, failures: 0, ...measured },
        read: { calls: times, failures: times, ...measured },
      },
    });
  }
});
