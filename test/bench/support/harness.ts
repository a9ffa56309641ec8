import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A command-line agent that can be measured. */
export interface Harness {
  readonly name: "cookie" | "pi" | "codex" | "claude";
  readonly program: string;
  readonly leadingArguments: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Points it at the scripted model and switches off everything that asks or phones. */
  configure(home: string, modelUrl: string): Promise<void>;
  run(prompt: string): readonly string[];
  resume(prompt: string, home: string): Promise<readonly string[]>;
}

const LAUNCHER = fileURLToPath(new URL("../../../cli/bin/cookie.js", import.meta.url));
/** One folder a peer, each an npm install of it, and `node24` with the Node that the peers run on. */
const PEERS = process.env["COOKIE_BENCH_PEERS"];

/** Ours, and the peers that are installed. */
export function installedHarnesses(): Harness[] {
  return [cookie(), ...peers().filter(({ program }) => existsSync(program))];
}

/** Where the peers' own Node is looked up first. */
export function peerPath(): string {
  return PEERS === undefined ? "" : `${join(PEERS, "node24/node_modules/.bin")}:`;
}

function cookie(): Harness {
  return {
    name: "cookie",
    program: process.env["COOKIE_BENCH_NODE"] ?? process.execPath,
    leadingArguments: [LAUNCHER],
    env: {},
    configure: (home, modelUrl) =>
      put(join(home, ".cookie-agent/config.toml"), cookieToml(modelUrl)),
    run: (prompt) => ["run", "--permission-mode", "yolo", "--max-turns", "1000", prompt],
    resume: async (prompt, home) => [
      "run",
      "--permission-mode",
      "yolo",
      "--resume-session",
      await newestSession(join(home, ".cookie-agent/sessions")),
      prompt,
    ],
  };
}

function peers(): Harness[] {
  if (PEERS === undefined) return [];
  const binary = (name: string) => join(PEERS, name, "node_modules/.bin", name);
  const pi = ["--offline", "--provider", "scripted", "--model", "scripted"];
  const codex = ["exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"];
  const claude = ["--dangerously-skip-permissions"];
  return [
    {
      name: "pi",
      program: binary("pi"),
      leadingArguments: pi,
      env: { PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" },
      configure: (home, modelUrl) =>
        put(join(home, ".pi/agent/models.json"), JSON.stringify(piModels(modelUrl))),
      run: (prompt) => ["-p", prompt],
      resume: async (prompt) => ["-c", "-p", prompt],
    },
    {
      name: "codex",
      program: binary("codex"),
      leadingArguments: codex,
      env: { BENCH_KEY: "x" },
      configure: (home, modelUrl) => put(join(home, ".codex/config.toml"), codexToml(modelUrl)),
      run: (prompt) => [prompt],
      resume: async (prompt) => ["resume", "--last", prompt],
    },
    {
      name: "claude",
      program: binary("claude"),
      leadingArguments: claude,
      env: {
        IS_SANDBOX: "1",
        ANTHROPIC_API_KEY: "x",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_TELEMETRY: "1",
      },
      configure: (home, modelUrl) =>
        put(
          join(home, ".claude/settings.json"),
          JSON.stringify({ env: { ANTHROPIC_BASE_URL: modelUrl } }),
        ),
      run: (prompt) => ["-p", prompt],
      resume: async (prompt) => ["-c", "-p", prompt],
    },
  ];
}

async function put(file: string, content: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

async function newestSession(sessions: string): Promise<string> {
  const logs = (await readdir(sessions, { recursive: true })).filter((name) =>
    name.endsWith("events.jsonl"),
  );
  const ids = logs.map((name) => name.split("/").at(-2) ?? "").sort();
  const newest = ids.at(-1);
  if (newest === undefined) throw new Error(`no session below ${sessions}`);
  return newest;
}

function cookieToml(modelUrl: string): string {
  return `[providers."custom.bench"]
source = "custom"
endpoint = "${modelUrl}/v1"
adaptor = "openai-compatible"
auth = { method = "no-auth-v1", values = {}, parameters = {} }

[providers."custom.bench".models.scripted]
display_name = "Scripted"

[providers."custom.bench".models.scripted.capabilities]
input = ["text"]
output = ["text"]
context_tokens = 1000000
output_tokens = 8000
tool_calling = true
parallel_tool_calls = true
structured_output = false
reasoning = false
temperature = false
top_p = false
seed = false
`;
}

function piModels(modelUrl: string): object {
  const model = { id: "scripted", contextWindow: 1_000_000, maxTokens: 8000 };
  const provider = { baseUrl: `${modelUrl}/v1`, api: "openai-completions", apiKey: "x" };
  return { providers: { scripted: { ...provider, models: [model] } } };
}

function codexToml(modelUrl: string): string {
  return `model = "gpt-5.1-codex"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "${modelUrl}/v1"
env_key = "BENCH_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[feedback]
enabled = false
`;
}
