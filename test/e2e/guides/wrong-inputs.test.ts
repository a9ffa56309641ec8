import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runCookie } from "../../support/run-cookie.ts";
import { createTempProject, type TempProject } from "../../support/temp-project.ts";
import { codeBlocks } from "./code-blocks.ts";

const [{ text: PROVIDER } = { text: "" }] = codeBlocks("README.md", "Connect a model").filter(
  ({ language }) => language === "toml",
);
const KEY = { ANTHROPIC_API_KEY: "sk-not-a-key" };
let project: TempProject;

beforeEach(async () => {
  project = await createTempProject();
});
afterEach(() => project.remove());

describe("what a newcomer gets wrong is answered in one line that says what to do", () => {
  test.for<[wrong: string, config: string, env: Record<string, string>, message: string]>([
    [
      "a variable that is not set",
      PROVIDER,
      {},
      ':3: providers."custom.anthropic".api_key: environment variable ANTHROPIC_API_KEY is not set; set it',
    ],
    [
      "a misspelt key",
      PROVIDER.replace("{}", "{ capabilities = { tool_caling = true } }"),
      KEY,
      ':4: providers."custom.anthropic".models.claude-sonnet-4-5.capabilities.tool_caling: unknown key; did you mean tool_calling?',
    ],
    [
      "a missing key",
      PROVIDER.replace(/^api_key = .*\n/m, ""),
      KEY,
      ':1: providers."custom.anthropic".api_key: is required by this adaptor; add it',
    ],
    [
      "a provider of one's own without the prefix",
      PROVIDER.replace("custom.", ""),
      KEY,
      ":1: providers.anthropic.source: is required; start the id with custom. to describe the provider here",
    ],
    [
      "a server for other machines",
      '[server]\nhost = "0.0.0.0"\n',
      {},
      ":2: server.host: must be 127.0.0.1 (from elsewhere use a tunnel that ends on this machine); fix it",
    ],
    ["a misspelt table", "[provider]\n", {}, ":1: provider: unknown key; did you mean providers?"],
    [
      "a relative command",
      '[plugins.echo]\ncommand = "python3"\n',
      {},
      ":2: plugins.echo.command: must be an absolute path, for nothing of the environment is inherited; write the full path or set env.PATH",
    ],
  ])("%s in the configuration", async ([, config, env, message]) => {
    await project.writeState("config.toml", config);
    const run = await runCookie(project, ["run", "hello"], { env });
    expect(run).toMatchObject({ exitCode: 5, stdout: "" });
    expect(run.stderr).toBe(`error: ${project.stateDir}/config.toml${message}\n`);
  });

  test.for<[wrong: string, args: string[], exitCode: number, message: string]>([
    [
      "no model",
      ["run", "hello"],
      5,
      "no model is configured; add a provider to ~/.cookie-agent/config.toml, or try the offline model with -m offline/script",
    ],
    [
      "no prompt",
      ["run"],
      2,
      "a prompt is needed: as an argument, with --prompt, or with --prompt-file",
    ],
    [
      "a misspelt option",
      ["run", "--modle", "x", "hello"],
      2,
      "unknown option --modle; did you mean --model?",
    ],
    ["a misspelt command", ["rnu", "hello"], 2, 'unknown command "rnu"; did you mean run?'],
    [
      "an unknown session",
      ["session", "show", "123"],
      1,
      'session show: "123" is no session id; `cookie session list` shows the ids',
    ],
  ])("%s on the command line", async ([, args, exitCode, message]) => {
    expect(await runCookie(project, args)).toEqual({
      exitCode,
      signal: null,
      stdout: "",
      stderr: `error: ${message}\n`,
    });
  });

  test("a port without a server", async () => {
    await project.writeState(
      "config.toml",
      `${PROVIDER.replace("\n", '\nendpoint = "http://127.0.0.1:9/v1"\n')}\n[model_retry]\nstandard_retries = 0\n`,
    );
    const run = await runCookie(project, ["run", "hello"], { env: KEY });
    expect(run).toMatchObject({ exitCode: 1, stdout: "" });
    expect(run.stderr).toBe(
      "error: cannot reach custom.anthropic (ECONNREFUSED); check the endpoint and the network\n",
    );
  });
});

test("[C-257] doctor tells why a plugin, a binding and a catalog provider do not work", async () => {
  await project.write("misfit/cookie-plugin.json", JSON.stringify(MISFIT));
  await project.writeState(
    "config.toml",
    [
      '[providers.anthropic]\nsource = "models_dev"',
      '[plugins.absent]\npath = "/nowhere"',
      `[plugins.misfit]\npath = ${JSON.stringify(`${project.cwd}/misfit`)}`,
      '[tools.implementations]\nbash = "misfit"',
      "",
    ].join("\n"),
  );
  const doctor = await runCookie(project, ["doctor"]);
  expect(doctor.exitCode).toBe(1);
  for (const finding of [
    /^warning +provider anthropic: its models would come from a catalog/m,
    /^failed +plugin absent: .*cookie-plugin\.json cannot be read \(ENOENT\)/m,
    /^warning +plugin misfit: bash cannot be served by plugin misfit: .*; it is unavailable/m,
  ]) {
    expect(doctor.stdout).toMatch(finding);
  }
});

const MISFIT = {
  manifest: 1,
  name: "misfit",
  version: "1.0.0",
  protocol: ["0.1.0"],
  runtime: { kind: "node", entry: "main.mjs" },
  tools: [
    {
      name: "bash",
      description: "Runs something else.",
      permission_name: "bash",
      parameters: { type: "object", properties: {}, additionalProperties: false },
    },
  ],
};
