import { describe, expect, test } from "vitest";
import type {
  CustomProviderConfig,
  ManagedProviderConfig,
} from "../../../../kernel/src/config/provider-config.ts";
import { capabilities, customProvider, loadToml, tomlFailure } from "./scenario.ts";

const adaptor = (name: string, endpoint = "https://a.example") =>
  `endpoint = "${endpoint}"\nadaptor = "${name}"`;
const auth = (method: string, rest = "values = {}") =>
  `[providers."custom.local".auth]\nmethod = "${method}"\n${rest}`;

async function custom(toml: string): Promise<CustomProviderConfig> {
  const provider = (await loadToml(toml)).config.providers.get("custom.local");
  if (provider?.source !== "custom") throw new Error("no custom provider");
  return provider;
}

async function model(lines: string, changes?: Record<string, string>) {
  const toml = customProvider({ model: lines, capabilities: capabilities(changes) });
  const found = (await custom(toml)).models.get("org/coder:7b");
  if (found === undefined) throw new Error("no model");
  return found;
}

const modelFailure = (lines: string, changes?: Record<string, string>) =>
  tomlFailure(customProvider({ model: lines, capabilities: capabilities(changes) }));

describe("custom providers", () => {
  test("the smallest one has every default", async () => {
    expect(await custom(customProvider({}))).toEqual({
      source: "custom",
      id: "custom.local",
      endpoint: "https://models.example/v1",
      adaptor: "openai-compatible",
      setup: {},
      auth: { method: "no-auth-v1", values: {}, parameters: {} },
      headers: {},
      models: new Map([
        [
          "org/coder:7b",
          {
            enabled: true,
            displayName: "Coder",
            wireModelId: "org/coder:7b",
            capabilities: {
              input: ["text"],
              contextTokens: 128_000,
              outputTokens: 8192,
              toolCalling: true,
              parallelToolCalls: true,
              structuredOutput: true,
              reasoning: true,
              temperature: true,
              topP: true,
              seed: true,
              media: new Map(),
            },
            defaults: {},
            options: {},
            variants: new Map(),
            defaultVariant: null,
          },
        ],
      ]),
    });
  });

  test.for([
    ['[providers.acme]\nsource = "custom"', "providers.acme.source"],
    ['[providers."custom.a"]\nsource = "models_dev"', 'providers."custom.a".source'],
    ['[providers.offline]\nsource = "models_dev"', "providers.offline"],
    ['[providers."custom."]\nsource = "custom"', 'providers."custom."'],
    ['[providers.ACME]\nsource = "models_dev"', "providers.ACME"],
  ] as const)("[C-129] the id and source of %j do not fit", async ([toml, key]) => {
    expect(await tomlFailure(toml)).toMatchObject({ code: "provider_invalid", key });
  });

  test.for([
    "http://models.example/v1",
    "http://localhost/v1",
    "http://127.0.0.1:8080/v2",
    "http://127.0.0.2:8080/v1",
    "https://user:pass@a.example",
    "https://a.example/?q=1",
    "https://a.example/#f",
    "https://",
    "https:a.example",
    "ftp://a.example",
    "a.example/v1",
    "https://a.example/ b",
    `https://a.example/${"x".repeat(2048)}`,
  ])("[C-134] endpoint %s is refused", async (endpoint) => {
    const toml = customProvider({ provider: adaptor("openai-compatible", endpoint) });
    expect(await tomlFailure(toml)).toMatchObject({
      code: "provider_invalid",
      key: 'providers."custom.local".endpoint',
    });
  });

  test.for([
    ["https://a.example/v1/", "https://a.example/v1"],
    ["http://localhost:80/v1", "http://localhost:80/v1"],
    ["http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"],
    ["http://[::1]:1/v1", "http://[::1]:1/v1"],
  ] as const)("[C-134] endpoint %s is taken as %s", async ([endpoint, taken]) => {
    const toml = customProvider({ provider: adaptor("openai-compatible", endpoint) });
    expect((await custom(toml)).endpoint).toBe(taken);
  });

  test.for([
    [
      adaptor("openai-chat"),
      auth("anthropic-api-key-v1", 'values = { api_key = "k" }'),
      "auth.method",
    ],
    [adaptor("openai-chat"), auth("magic"), "auth.method"],
    [adaptor("openai-chat"), auth("bearer-api-key-v1"), "auth.values.api_key"],
    [
      adaptor("openai-chat"),
      auth("no-auth-v1", 'values = { api_key = "k" }'),
      "auth.values.api_key",
    ],
    [
      adaptor("openai-chat"),
      auth("no-auth-v1", 'values = {}\nparameters = { a = "b" }'),
      "auth.parameters.a",
    ],
    [
      adaptor("openai-compatible"),
      auth("api-key-header-v1", 'values = { api_key = "k" }'),
      "auth.parameters.header_name",
    ],
    [
      adaptor("openai-compatible"),
      auth(
        "api-key-header-v1",
        'values = { api_key = "k" }\nparameters = { header_name = "cookie" }',
      ),
      "auth.parameters.header_name",
    ],
    [adaptor("unheard-of"), auth("no-auth-v1"), "adaptor"],
    [`${adaptor("openai-chat")}\nsetup = { region = "a" }`, auth("no-auth-v1"), "setup.region"],
    [
      adaptor("aws-bedrock-converse"),
      auth("aws-sigv4-credentials-v1", 'values = { access_key_id = "a", secret_access_key = "b" }'),
      "setup.region",
    ],
    [
      `${adaptor("azure-openai-chat")}\nsetup = { api_version = "v1", deployment = "d" }`,
      auth("azure-api-key-v1", 'values = { api_key = "k" }'),
      "setup.api_version",
    ],
  ] as const)(
    "[C-135] authentication and setup belong to the adaptor: %j %j",
    async ([provider, lines, key]) => {
      expect(await tomlFailure(customProvider({ provider, auth: lines }))).toMatchObject({
        code: "provider_invalid",
        key: `providers."custom.local".${key}`,
      });
    },
  );

  test("adaptors that this build cannot run are decoded", async () => {
    const toml = customProvider({
      provider: `${adaptor("azure-openai-responses")}\nsetup = { api_version = "2026-01-31", deployment = "prod" }`,
      auth: auth("azure-api-key-v1", 'values = { api_key = "k" }'),
    });
    const provider = await custom(toml);
    expect(provider.setup).toEqual({ api_version: "2026-01-31", deployment: "prod" });
    expect(provider.models.get("org/coder:7b")?.wireModelId).toBe("prod");
  });

  test("header names are lower-cased", async () => {
    const provider = `${adaptor("openai-chat")}\nheaders = { X-Team = "a b" }`;
    expect((await custom(customProvider({ provider }))).headers).toEqual({ "x-team": "a b" });
  });

  test.for([
    ["Authorization", '"a"'],
    ["x-api-key", '"a"'],
    ["User-Agent", '"a"'],
    ["x-a", '"a\\u0007"'],
    ['"x a"', '"a"'],
    ['"x-é"', '"a"'],
    ["x-a", `"${"a".repeat(8193)}"`],
  ] as const)("[C-136] the header %s cannot be set to %s", async ([name, value]) => {
    const provider = `${adaptor("openai-chat")}\nheaders = { ${name} = ${value} }`;
    expect((await tomlFailure(customProvider({ provider }))).problem).toContain(
      "invalid_static_headers",
    );
  });

  test("[C-136] headers that differ in case only are refused", async () => {
    const provider = `${adaptor("openai-chat")}\nheaders = { X-A = "1", x-a = "2" }`;
    expect((await tomlFailure(customProvider({ provider }))).problem).toContain("twice");
  });

  test("[C-136] anthropic-beta is an option of the Anthropic adaptors, not a header", async () => {
    const provider = `${adaptor("anthropic")}\nheaders = { anthropic-beta = "a" }`;
    const key = auth("anthropic-api-key-v1", 'values = { api_key = "k" }');
    expect(await tomlFailure(customProvider({ provider, auth: key }))).toMatchObject({
      code: "provider_invalid",
    });
    const anthropic = customProvider({
      provider: adaptor("anthropic"),
      auth: key,
      model: 'options = { beta = ["b1", "b2"] }',
    });
    expect((await custom(anthropic)).models.get("org/coder:7b")?.options).toEqual({
      beta: ["b1", "b2"],
    });
  });

  test("a provider without models is refused", async () => {
    const toml = `[providers."custom.local"]\nsource = "custom"\n${adaptor("openai-chat")}\nauth = { method = "no-auth-v1", values = {} }\nmodels = {}`;
    expect(await tomlFailure(toml)).toMatchObject({ key: 'providers."custom.local".models' });
  });
});

describe("custom models", () => {
  test("[C-029] a disabled model is checked like an enabled one", async () => {
    expect((await modelFailure("enabled = false", { input: "[]" })).key).toContain(
      "capabilities.input",
    );
  });

  test.for([
    [{ input: '["image"]' }, "input"],
    [{ input: '["text", "text"]' }, "input"],
    [{ input: '["text", "smell"]' }, "input[1]"],
    [{ output: '["text", "image"]' }, "output"],
    [{ output_tokens: "128001" }, "output_tokens"],
    [{ context_tokens: "0" }, "context_tokens"],
    [{ tool_calling: "false" }, "parallel_tool_calls"],
    [{ native_replay: '"maybe"' }, "native_replay"],
    [{ cancellation: '"remote"' }, "cancellation"],
    [{ input: '["text", "image"]' }, "media.image"],
    [{ media: "{ pdf = { mime_types = ['a/b'], max_bytes = 1, max_count = 1 } }" }, "media.pdf"],
  ] as const)("[C-137] capabilities %j are refused", async ([changes, key]) => {
    const error = await modelFailure("", changes as Record<string, string>);
    expect(error.key).toBe(`providers."custom.local".models."org/coder:7b".capabilities.${key}`);
  });

  test("[C-137] a capability that is left out is as with most models", async () => {
    const { capabilities: found } = await model("", { seed: "true" });
    expect(found).toMatchObject({ seed: true });
    const toml = '[providers."custom.x"]\nadaptor = "openai-chat"\napi_key = "k"\nmodels.m = {}\n';
    const provider = (await loadToml(toml)).config.providers.get("custom.x");
    if (provider?.source !== "custom") throw new Error("expected a custom provider");
    expect(provider).toMatchObject({
      endpoint: "https://api.openai.com/v1",
      auth: { method: "bearer-api-key-v1" },
    });
    expect(provider.models.get("m")).toMatchObject({
      displayName: "m",
      capabilities: {
        input: ["text"],
        contextTokens: 128_000,
        outputTokens: 16_384,
        toolCalling: true,
        parallelToolCalls: true,
        reasoning: false,
        seed: false,
      },
    });
  });

  test("[C-135] a server on this machine needs no credential, any other one does", async () => {
    const local = '[providers."custom.x"]\nadaptor = "openai-compatible"\nmodels.m = {}\n';
    const provider = (
      await loadToml(`${local}endpoint = "http://127.0.0.1:8080/v1"\n`)
    ).config.providers.get("custom.x");
    expect(provider).toMatchObject({ auth: { method: "no-auth-v1" } });
    expect(await tomlFailure(`${local}endpoint = "https://models.example/v1"\n`)).toMatchObject({
      code: "missing_key",
      key: 'providers."custom.x".api_key',
    });
  });

  test("[C-135] api_key and auth exclude each other", async () => {
    const toml =
      '[providers."custom.x"]\nadaptor = "anthropic"\napi_key = "k"\nauth = { method = "anthropic-api-key-v1", values = { api_key = "k" } }\nmodels.m = {}\n';
    expect(await tomlFailure(toml)).toMatchObject({ code: "conflict", line: 3 });
  });

  test("[C-137] media limits stand for exactly the inputs that are not text", async () => {
    const { capabilities: found } = await model("", {
      input: '["image", "text"]',
      media: "{ image = { mime_types = ['image/png'], max_bytes = 5, max_count = 2 } }",
      native_replay: '"required"',
      cancellation: '"local_only"',
    });
    expect(found.input).toEqual(["text", "image"]);
    expect(found.nativeReplay).toBe("required");
    expect([...found.media]).toEqual([
      ["image", { mimeTypes: ["image/png"], maxBytes: 5, maxCount: 2 }],
    ]);
  });

  test("defaults are decoded", async () => {
    const defaults =
      'defaults = { temperature = 2, top_p = 0.5, seed = -3, max_output_tokens = 8192, stop = ["a"], tool_choice = { named = "look" } }';
    expect((await model(defaults)).defaults).toEqual({
      temperature: 2,
      topP: 0.5,
      seed: -3,
      maxOutputTokens: 8192,
      stop: ["a"],
      toolChoice: { named: "look" },
    });
  });

  test.for([
    ["temperature = 2.1", {}],
    ["top_p = -0.1", {}],
    ["seed = 1.5", {}],
    ["max_output_tokens = 8193", {}],
    ['stop = ["1","2","3","4","5","6","7","8","9"]', {}],
    ['stop = [""]', {}],
    ['tool_choice = "maybe"', {}],
    ["temperature = 1", { temperature: "false" }],
    ["top_p = 1", { top_p: "false" }],
    ["seed = 1", { seed: "false" }],
    ['tool_choice = "auto"', { tool_calling: "false", parallel_tool_calls: "false" }],
  ] as const)("[C-138] the default %s is refused with %j", async ([line, changes]) => {
    const error = await modelFailure(`defaults = { ${line} }`, changes as Record<string, string>);
    expect(error.key).toContain(`defaults.${line.split(" ")[0]}`);
  });

  test.for([
    ['options = { api_path = "/complete" }', { apiPath: "/complete" }],
    ["options = {}", {}],
  ] as const)("%s is decoded", async ([line, options]) => {
    expect((await model(line)).options).toEqual(options);
  });

  test.for([
    'options = { api_path = "complete" }',
    'options = { api_path = "/a?b" }',
    "options = { store = true }",
    'options = { region = "a" }',
    'options = { beta = ["a"] }',
  ])("[C-139] %s is refused for this adaptor", async (line) => {
    expect((await modelFailure(line)).key).toContain(".options.");
  });

  test("[C-139] an adaptor of OpenAI takes organization, project and store", async () => {
    const toml = customProvider({
      provider: adaptor("openai-responses"),
      auth: auth("bearer-api-key-v1", 'values = { api_key = "k" }'),
      model: 'options = { organization = "o", project = "p", store = true }',
    });
    expect((await custom(toml)).models.get("org/coder:7b")?.options).toEqual({
      organization: "o",
      project: "p",
      store: true,
    });
  });

  test("[C-140] store needs authentication", async () => {
    const toml = customProvider({
      provider: adaptor("openai-chat"),
      model: "options = { store = true }",
    });
    expect((await tomlFailure(toml)).problem).toBe("needs authentication");
  });

  test("the Responses adaptor without authentication carries text only", async () => {
    const provider = adaptor("openai-responses");
    expect((await tomlFailure(customProvider({ provider }))).problem).toContain("text only");
    const bare = capabilities({
      tool_calling: "false",
      parallel_tool_calls: "false",
      structured_output: "false",
      reasoning: "false",
    });
    await expect(custom(customProvider({ provider, capabilities: bare }))).resolves.toBeDefined();
  });

  test("[C-009] variants are decoded in order of their ids, and default is an ordinary name", async () => {
    const { variants, defaultVariant } = await model(`default_variant = "default"
[providers."custom.local".models."org/coder:7b".variants]
low = { operation = "add", reasoning = { type = "effort", value = "low" } }
default = { operation = "add", display_name = "Usual", model_id = "other", defaults = { seed = 1 } }`);
    expect(defaultVariant).toBe("default");
    expect([...variants]).toEqual([
      [
        "default",
        {
          operation: "add",
          displayName: "Usual",
          wireModelId: "other",
          defaults: { seed: 1 },
          options: {},
        },
      ],
      [
        "low",
        {
          operation: "add",
          defaults: {},
          options: {},
          reasoning: { type: "effort", value: "low" },
        },
      ],
    ]);
  });

  test.for([
    ['variants.base = { operation = "add" }', "variants.base"],
    ['variants.a = { operation = "replace" }', "variants.a.operation"],
    ['variants.a = { operation = "disable" }', "variants.a.operation"],
    ["variants.a = {}", "variants.a.operation"],
    [
      'variants.a = { operation = "add", reasoning = { type = "toggle", enabled = true } }',
      "variants.a.reasoning.type",
    ],
    [
      'variants.a = { operation = "add", reasoning = { type = "effort" } }',
      "variants.a.reasoning.value",
    ],
    [
      'variants.a = { operation = "add", reasoning = { type = "effort", value = "a", enabled = true } }',
      "variants.a.reasoning.enabled",
    ],
    ['default_variant = "gone"', "default_variant"],
    ['default_variant = "Bad Name"', "default_variant"],
  ] as const)("[C-009] %s is refused", async ([line, key]) => {
    expect((await modelFailure(line)).key).toBe(
      `providers."custom.local".models."org/coder:7b".${key}`,
    );
  });

  test.for([
    ["org/coder:7b", true],
    ["a", true],
    ["x".repeat(384), true],
    ["x".repeat(385), false],
    ["", false],
    ["a//b", false],
    ["/a", false],
    ["a b", false],
    ["a[b]", false],
  ] as const)("[C-006] provider model id %s: %s", async ([id, valid]) => {
    const toml = customProvider({}).replaceAll('"org/coder:7b"', JSON.stringify(id));
    const outcome = valid ? loadToml(toml).then(() => "ok") : tomlFailure(toml);
    expect(await outcome).toEqual(
      valid ? "ok" : expect.objectContaining({ problem: "invalid provider model id" }),
    );
  });
});

describe("managed providers", () => {
  const managed = async (lines: string) => {
    const { config } = await loadToml(`[providers.acme]\nsource = "models_dev"\n${lines}`);
    return config.providers.get("acme") as ManagedProviderConfig;
  };
  const failure = (lines: string) =>
    tomlFailure(`[providers.acme]\nsource = "models_dev"\n${lines}`);

  test("the source alone is enough", async () => {
    expect(await managed("")).toEqual({
      source: "models_dev",
      id: "acme",
      setup: {},
      modelOverrides: new Map(),
    });
  });

  test("overrides are sparse", async () => {
    const provider = await managed(
      'shape = "chat"\n[providers.acme.model_overrides."org/m"]\nenabled = false\ndefaults = { temperature = 1 }\nvariants = { fast = { operation = "disable" } }',
    );
    expect(provider.shape).toBe("chat");
    expect(provider.modelOverrides.get("org/m")).toEqual({
      enabled: false,
      defaults: { temperature: 1 },
      variants: new Map([["fast", { operation: "disable", defaults: {}, options: {} }]]),
      compaction: "unsupported",
    });
  });

  test.for([
    ['base_url = "https://a.example"', "provider_invalid", "base_url"],
    ['base_url = "http://localhost:1/v1"\napi_key = "k"', "provider_invalid", "base_url"],
    [
      'api_key = "k"\nauth_override = { method = "bearer-api-key-v1", values = { api_key = "k" } }',
      "conflict",
      "api_key",
    ],
    ['auth_override = { method = "bearer-api-key-v1" }', "missing_key", "auth_override.values"],
    ['shape = "completions"', "invalid_value", "shape"],
    ['model_overrides.m = { compaction = "v1" }', "invalid_value", "model_overrides.m.compaction"],
    ["model_overrides.m = { capabilities = {} }", "unknown_key", "model_overrides.m.capabilities"],
    ['setup = { BAD = "x" }', "provider_invalid", "setup.BAD"],
    ['endpoint = "https://a.example"', "unknown_key", "endpoint"],
  ] as const)("%j is refused", async ([lines, code, key]) => {
    expect(await failure(lines)).toMatchObject({ code, key: `providers.acme.${key}` });
  });

  test.for([
    ["a".repeat(128), true],
    ["a".repeat(129), false],
    ["9._-", true],
    [".a", false],
  ] as const)("[C-006] provider id %s: %s", async ([id, valid]) => {
    const toml = `[providers."${id}"]\nsource = "models_dev"`;
    const outcome = valid ? loadToml(toml).then(() => "ok") : tomlFailure(toml);
    expect(await outcome).toEqual(
      valid ? "ok" : expect.objectContaining({ problem: "invalid provider id" }),
    );
  });
});
