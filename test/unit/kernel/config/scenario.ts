import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { ConfigError } from "../../../../kernel/src/config/config-error.ts";
import type { FirstPartyFacts } from "../../../../kernel/src/config/first-party.ts";
import {
  type LoadConfigOptions,
  type LoadedConfig,
  loadConfig,
} from "../../../../kernel/src/config/load-config.ts";

/** File contents by path relative to a `.cookie-agent` directory. */
export type LayerFiles = Readonly<Record<string, string | Uint8Array>>;

export interface ScenarioFiles {
  readonly user?: LayerFiles;
  readonly workspace?: LayerFiles;
}

export interface Scenario {
  readonly home: string;
  readonly cwd: string;
  /** `<home>/.cookie-agent`. */
  readonly root: string;
  /** `<cwd>/.cookie-agent`. */
  readonly layer: string;
  load(options?: Partial<LoadConfigOptions>): Promise<LoadedConfig>;
  /** The error that a load ends with. */
  failure(options?: Partial<LoadConfigOptions>): Promise<ConfigError>;
}

/** A home and a project of their own, gone after the test. Workspaces are trusted for the process unless told otherwise. */
export async function makeScenario(files: ScenarioFiles = {}): Promise<Scenario> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "cookie-config-")));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const home = join(base, "home");
  const cwd = join(base, "project");
  const root = join(home, ".cookie-agent");
  const layer = join(cwd, ".cookie-agent");
  await mkdir(home);
  await mkdir(cwd);
  await writeFiles(root, files.user ?? {});
  await writeFiles(layer, files.workspace ?? {});
  const load = (options: Partial<LoadConfigOptions> = {}) =>
    loadConfig({
      homeDir: home,
      cwd,
      env: {},
      firstParty: FIRST_PARTY,
      trust: "this_process",
      ...options,
    });
  return {
    home,
    cwd,
    root,
    layer,
    load,
    failure: (options) =>
      load(options).then(
        () => {
          throw new Error("the load succeeded");
        },
        (error: ConfigError) => error,
      ),
  };
}

export async function writeFiles(directory: string, files: LayerFiles): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
}

/** A named pipe: reading one must never wait for its other end. */
export function makePipe(path: string): void {
  execFileSync("sh", ["-c", 'mkfifo "$0"', path]);
}

/** Loads one user `config.toml`. */
export async function loadToml(
  toml: string | Uint8Array,
  options?: Partial<LoadConfigOptions>,
): Promise<LoadedConfig> {
  return (await makeScenario({ user: { "config.toml": toml } })).load(options);
}

/** The error of one user `config.toml`. */
export async function tomlFailure(
  toml: string | Uint8Array,
  options?: Partial<LoadConfigOptions>,
): Promise<ConfigError> {
  return (await makeScenario({ user: { "config.toml": toml } })).failure(options);
}

/** Loads one user agent document `agents/<id>.md`. */
export async function loadAgent(text: string | Uint8Array, id = "helper") {
  const { agents } = await (await makeScenario({ user: { [`agents/${id}.md`]: text } })).load();
  const document = agents.get(id);
  if (document === undefined) throw new Error(`no agent ${id}`);
  return document;
}

/** The error of one user agent document. */
export async function agentFailure(text: string | Uint8Array, id = "helper"): Promise<ConfigError> {
  return (await makeScenario({ user: { [`agents/${id}.md`]: text } })).failure();
}

function firstParty(id: string, tools: readonly [name: string, profile?: string[]][]) {
  return {
    id,
    directory: `/plugins/${id}`,
    manifest: {
      manifest: 1,
      name: id,
      version: "1.0.0",
      protocol: ["0.1.0"],
      runtime: { kind: "node", entry: "main.js" },
      tools: tools.map(([name, profile]) => ({
        name,
        description: name,
        parameters: { type: "object" },
        permission_name: name,
        ...(profile === undefined ? {} : { profile }),
      })),
    },
  } satisfies FirstPartyFacts;
}

/** Two shipped plugins: one the kernel insists on, one with a profile of its own. */
export const FIRST_PARTY: readonly FirstPartyFacts[] = [
  { ...firstParty("builtin.files", [["look"], ["change"]]), required: true },
  firstParty("builtin.extra", [
    ["gather", ["special"]],
    ["look_wide", ["cookie", "special"]],
  ]),
];

/** A minimal custom provider whose lines can be replaced or extended. */
export function customProvider(parts: {
  readonly provider?: string;
  readonly auth?: string;
  readonly model?: string;
  readonly capabilities?: string;
}): string {
  return `[providers."custom.local"]
source = "custom"
${parts.provider ?? 'endpoint = "https://models.example/v1"\nadaptor = "openai-compatible"'}
${parts.auth ?? '[providers."custom.local".auth]\nmethod = "no-auth-v1"\nvalues = {}'}
[providers."custom.local".models."org/coder:7b"]
display_name = "Coder"
${parts.model ?? ""}
[providers."custom.local".models."org/coder:7b".capabilities]
${parts.capabilities ?? capabilities()}
`;
}

/** Capability lines of a text model that can do everything else. */
export function capabilities(changes: Readonly<Record<string, string>> = {}): string {
  const lines: Record<string, string> = {
    input: '["text"]',
    output: '["text"]',
    context_tokens: "128000",
    output_tokens: "8192",
    tool_calling: "true",
    parallel_tool_calls: "true",
    structured_output: "true",
    reasoning: "true",
    temperature: "true",
    top_p: "true",
    seed: "true",
    ...changes,
  };
  return Object.entries(lines)
    .map(([key, value]) => `${key} = ${value}`)
    .join("\n");
}
