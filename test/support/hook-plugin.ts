import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HookName, HookParams } from "@cookie-agent/sdk/protocol";
import type { TempProject } from "./temp-project.ts";

/** What a scripted hook can do instead of answering. */
export interface HookTools {
  /** From 1: how often this hook was asked. */
  readonly count: number;
  readonly params: { readonly session_id: string; readonly context_id: string };
  readonly plugin: { ask(method: string, params: object): Promise<Record<string, unknown>> };
  readonly cancelled: Promise<void>;
  crash(): never;
  never(): Promise<never>;
  /** Answers with exactly this text as result. */
  raw(text: string): Promise<never>;
  fail(code: string, message: string): Error;
}

/** Scripts may answer what no type allows. */
export type HookScripts = {
  readonly [H in HookName]?: (facts: HookParams<H>, tools: HookTools) => unknown;
};

export interface HookPlugin {
  readonly name: string;
  /** Sent to the plugin's process as their own source, so they may use nothing but their parameters. */
  readonly hooks: HookScripts;
  /** Keys of its `[plugins.<name>]` section. */
  readonly keys?: string;
  /** Members of its manifest. */
  readonly manifest?: object;
}

/** One line of the record: a hook that was delivered, with what it was told. */
export interface Delivered {
  readonly plugin: string;
  readonly hook: HookName;
  readonly cancelled?: true;
  readonly [fact: string]: unknown;
}

/** Puts plugins of hooks into a project's configuration; what they are told is read with `delivered`. */
export async function writeHookPlugins(
  project: TempProject,
  plugins: readonly HookPlugin[],
): Promise<void> {
  const record = recordOf(project);
  const sections = plugins.map(async ({ name, hooks, keys = "", manifest = {} }) => {
    const directory = `hook-plugins/${name}`;
    const intercept = Object.keys(hooks);
    await project.writeState(
      `${directory}/cookie-plugin.json`,
      JSON.stringify({
        manifest: 1,
        name,
        version: "1.0.0",
        protocol: ["0.1.0"],
        runtime: { kind: "node", entry: "main.mjs" },
        capabilities: { intercept },
        ...manifest,
      }),
    );
    await project.writeState(`${directory}/main.mjs`, programOf(name, hooks, record));
    return `[plugins.${name}]\npath = ${JSON.stringify(join(project.stateDir, directory))}\n${keys}\n`;
  });
  const config = join(project.stateDir, "config.toml");
  await appendFile(config, `\n${(await Promise.all(sections)).join("\n")}`);
}

/** Everything that hooks were told, in order. */
export async function delivered(project: TempProject): Promise<Delivered[]> {
  const text = await readFile(recordOf(project), "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Delivered);
}

export function recordOf(project: TempProject): string {
  return join(project.stateDir, "delivered.jsonl");
}

function programOf(name: string, hooks: HookScripts, record: string): string {
  const library = pathToFileURL(
    join(import.meta.dirname, "../fixtures/plugins/interceptor.mjs"),
  ).href;
  const scripts = Object.entries(hooks).map(([hook, script]) => `${hook}: ${String(script)}`);
  return `import { intercept } from ${JSON.stringify(library)};
intercept({ name: ${JSON.stringify(name)}, record: ${JSON.stringify(record)}, hooks: {
${scripts.join(",\n")}
} });
`;
}
