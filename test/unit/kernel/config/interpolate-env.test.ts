import { expect, test } from "vitest";
import type {
  CustomProviderConfig,
  ManagedProviderConfig,
} from "../../../../kernel/src/config/provider-config.ts";
import { customProvider, loadToml, tomlFailure } from "./scenario.ts";

const env = { HOST: "models.example", KEY: "k$${env:HOST}", _A1: "one", BAD: "a\ufffdb" };

async function apiKey(text: string): Promise<string | undefined> {
  const toml = `[providers.acme]\nsource = "models_dev"\napi_key = '${text}'`;
  const { config } = await loadToml(toml, { env });
  return (config.providers.get("acme") as ManagedProviderConfig).apiKey?.reveal();
}

const failure = (text: string) =>
  tomlFailure(`[providers.acme]\nsource = "models_dev"\napi_key = '${text}'`, { env });

test.for([
  ["${env:HOST}", "models.example"],
  ["a${env:_A1}b${env:_A1}", "aonebone"],
  ["$$", "$"],
  ["$${env:HOST}", "${env:HOST}"],
  ["${env:KEY}", "k$${env:HOST}"],
] as const)("[C-034] %s becomes %s in one pass", async ([text, value]) => {
  expect(await apiKey(text)).toBe(value);
});

test.for(["$", "a$b", "${HOST}", "${env:host}", "${env:HOST:-x}", "${env:}", "${env:HOST", "$${"])(
  "[C-034] the text %s is refused unless its dollars are doubled",
  async (text) => {
    const outcome = text === "$${" ? apiKey(text) : failure(text);
    expect(await outcome).toEqual(
      text === "$${"
        ? "${"
        : expect.objectContaining({
            code: "interpolation",
            key: "providers.acme.api_key",
            line: 3,
          }),
    );
  },
);

test("[C-035] a missing variable is named together with its place", async () => {
  expect(await failure("${env:GONE}")).toMatchObject({
    code: "env_missing",
    key: "providers.acme.api_key",
    problem: "environment variable GONE is not set",
  });
});

test("[C-035] a value that is not UTF-8 has an error of its own", async () => {
  expect(await failure("${env:BAD}")).toMatchObject({
    code: "env_not_utf8",
    problem: "environment variable BAD is not valid UTF-8",
  });
});

test("[C-031] [C-035] the text of an environment value is in no error", async () => {
  const toml = `[providers.acme]\nsource = "models_dev"\napi_key = "k"\nbase_url = "\${env:BAD_URL}"`;
  const error = await tomlFailure(toml, { env: { BAD_URL: "ftp://hunter2" } });
  expect(error.code).toBe("provider_invalid");
  expect(error.message).not.toContain("hunter2");
});

test("[C-033] the six places of a provider are replaced", async () => {
  const { config, secretEnvNames } = await loadToml(
    `${customProvider({
      provider: 'endpoint = "https://${env:HOST}/v1"\nadaptor = "azure-openai-chat"',
      auth: `[providers."custom.local".setup]
api_version = "2026-01-01"
deployment = "\${env:PLACE}"
[providers."custom.local".auth]
method = "azure-api-key-v1"
values = { api_key = "\${env:KEY_A}" }`,
    })}
[providers.acme]
source = "models_dev"
base_url = "https://\${env:HOST}"
setup = { region = "\${env:PLACE}" }
api_key = "\${env:KEY_B}"
[providers.other]
source = "models_dev"
[providers.other.auth_override]
method = "bearer-api-key-v1"
values = { api_key = "\${env:KEY_C}" }`,
    { env: { HOST: "h.example", PLACE: "there", KEY_A: "a", KEY_B: "b", KEY_C: "c" } },
  );
  const custom = config.providers.get("custom.local") as CustomProviderConfig;
  const managed = config.providers.get("acme") as ManagedProviderConfig;
  const other = config.providers.get("other") as ManagedProviderConfig;
  expect([
    custom.endpoint,
    custom.setup["deployment"],
    custom.auth.values["api_key"]?.reveal(),
    managed.baseUrl,
    managed.setup["region"],
    managed.apiKey?.reveal(),
    other.authOverride?.values["api_key"]?.reveal(),
  ]).toEqual(["https://h.example/v1", "there", "a", "https://h.example", "there", "b", "c"]);
  expect([...secretEnvNames].sort()).toEqual(["KEY_A", "KEY_B", "KEY_C"]);
});

test.for([
  customProvider({ model: 'model_id = "${env:HOST}"' }),
  customProvider({
    provider:
      'endpoint = "https://a.example"\nadaptor = "openai-compatible"\nheaders = { x-a = "${env:HOST}" }',
  }),
  '[providers.acme]\nsource = "models_dev"\nshape = "${env:HOST}"',
  customProvider({
    auth: '[providers."custom.local".auth]\nmethod = "${env:HOST}"\nvalues = {}',
  }),
])("[C-033] anywhere else in a provider it is refused", async (toml) => {
  expect(await tomlFailure(toml, { env })).toMatchObject({ code: "interpolation" });
});

test("[C-033] other tables are literal", async () => {
  const { config } = await loadToml(
    `[mcp.servers.a]\ncommand = "$a"\nenv = { T = "\${env:HOST}" }
[plugins.p]\ncommand = "/p"\nenv = { T = "\${env:HOST} $" }\nconfig = { x = "\${env:GONE}" }`,
    { env },
  );
  expect(config.mcp.servers.get("a")?.transport).toMatchObject({ env: { T: "${env:HOST}" } });
  expect(config.plugins[0]).toMatchObject({
    env: { T: "${env:HOST} $" },
    config: { x: "${env:GONE}" },
  });
});
