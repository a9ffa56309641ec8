import { describe, expect, test } from "vitest";
import { loadToml, makeScenario, tomlFailure } from "./scenario.ts";

describe("syntax", () => {
  test("[C-025] [B125] a leading byte order mark is accepted", async () => {
    const { config } = await loadToml("\ufeff[server]\nport = 5");
    expect(config.server.port).toBe(5);
  });

  test("[C-025] bytes that are no UTF-8 are reported with their line", async () => {
    const error = await tomlFailure(Buffer.from('# \u00e9 \ufffd\nx = "\xff"\n', "latin1"));
    expect(error).toMatchObject({ code: "toml_syntax", problem: "invalid UTF-8" });
    const later = Buffer.concat([Buffer.from('# é \ufffd\n\nx = "'), Buffer.of(0xff)]);
    expect(await tomlFailure(later)).toMatchObject({ line: 3 });
  });

  test.for([
    ["a duplicate key", "[server]\nport = 1\nport = 2\n", 3, /redefine an already defined/],
    ["a duplicate table", "[server]\n[approval]\n[server]\n", 3, /redefine an already defined/],
    ["a missing value", "\n\nserver =\n", 3, /^no valid TOML: .+/],
    ["nonsense", "what is this", 1, /illegal character in key$/],
  ] as const)(
    "[C-025] %s is reported with path, line and what it is",
    async ([, toml, line, problem]) => {
      const error = await tomlFailure(toml);
      expect(error).toMatchObject({ code: "toml_syntax", line });
      expect(error.problem).toMatch(problem);
      expect(error.path.endsWith("config.toml")).toBe(true);
    },
  );

  test.for([
    'api_key = "hunter2',
    "api_key = hunter2",
    'api_key = "hunter2" x',
    'api_key = "\\hunter2"',
    'api_key = "x"\napi_key = "hunter2"',
    'hunter2 "x"',
    "hunter2",
    "[hunter2\n",
    '"""hunter2',
    "a = 2026-13-01hunter2",
    "a = 1_hunter2",
    "a = [hunter2]",
    "a = {hunter2",
    "a = \u0001hunter2",
  ])("[C-025] an error in %j quotes nothing of the file", async (toml) => {
    const error = await tomlFailure(toml);
    expect(error.code).toBe("toml_syntax");
    expect(error.message).not.toContain("hunter2");
  });
});

describe("limits", () => {
  const nested = (depth: number) =>
    `[plugins.a]\ncommand = "/a"\nconfig = ${"{ a = ".repeat(depth)}1${" }".repeat(depth)}`;

  test.for([
    ["depth", nested(31), "toml_limit"],
    ["array entries", `[tools]\ninclude = [${"'a',".repeat(4097)}]`, "toml_limit"],
    ["table entries", `[pricing.models]\n${lines(4097, (n) => `"p/${n}" = {}`)}`, "toml_limit"],
    ["string length", `[server]\nhost = "${"é".repeat(131_073)}"`, "toml_limit"],
    ["a date", "[server]\nport = 2026-01-01", "toml_limit"],
    ["a time", "[server]\nport = 10:00:00", "toml_limit"],
    ["infinity", "[server]\nport = inf", "toml_limit"],
    ["not a number", "[server]\nport = nan", "toml_limit"],
    ["a lossy integer", "[server]\nport = 9007199254740993", "toml_limit"],
  ] as const)("[C-026] %s beyond the limit is refused", async ([, toml, code]) => {
    const error = await tomlFailure(toml);
    expect(error).toMatchObject({ code, layer: "user" });
    expect(error.line).toBeGreaterThanOrEqual(1);
  });

  test.for([
    ["depth", nested(29)],
    ["table entries", `[pricing.models]\n${lines(4096, (n) => `"p/${n}" = {}`)}`],
    ["integers", `[plugins.a]\ncommand = "/a"\nconfig = { a = 9007199254740991 }`],
  ] as const)("[C-026] %s at the limit are accepted", async ([, toml]) => {
    await expect(loadToml(toml)).resolves.toBeDefined();
  });

  test("[C-004] the string limit counts bytes", async () => {
    const text = (length: number) =>
      `[plugins.a]\ncommand = "/a"\nconfig = { a = "${"é".repeat(length)}" }`;
    await expect(loadToml(text(131_072))).resolves.toBeDefined();
    expect(await tomlFailure(text(131_073))).toMatchObject({
      code: "toml_limit",
      key: "plugins.a.config.a",
      line: 3,
    });
  });
});

describe("errors", () => {
  test.for([
    ["a table", "[sever]\nport = 1", "sever", 1, "did you mean server?"],
    ["a top-level key", "budgte = 1", "budgte", 1, "did you mean budget?"],
    ["a nested key", "[server]\nprot = 1", "server.prot", 2, "did you mean port?"],
    [
      "a key of no likeness",
      "[server]\nsomething_else = 1",
      "server.something_else",
      2,
      "remove it",
    ],
    [
      "a key of an inline table",
      "[server]\n[context_compaction]\ntrigger = { percnt = 1 }",
      "context_compaction.trigger.percnt",
      3,
      "did you mean percent?",
    ],
    ["a key of a dotted table", "server.Port = 1", "server.Port", 1, "did you mean port?"],
    ["a key with a space", '[server]\n"po rt" = 1', 'server."po rt"', 2, "did you mean port?"],
  ] as const)(
    "[C-028] [C-030] [B124] %s that is unknown is rejected with key, line and the nearest known name",
    async ([, toml, key, line, advice]) => {
      expect(await tomlFailure(toml)).toMatchObject({
        code: "unknown_key",
        layer: "user",
        key,
        line,
        problem: "unknown key",
        advice,
      });
    },
  );

  test("[B124] a server entry with one extra key is rejected by file, line and key", async () => {
    const scenario = await makeScenario({
      user: { "config.toml": '[mcp.servers.docs]\ncommand = "docs"\ntimeout = 5' },
    });
    const error = await scenario.failure();
    expect(error.message).toBe(
      `${scenario.root}/config.toml:3: mcp.servers.docs.timeout: MCP server "docs": unknown key; did you mean timeout_ms?`,
    );
  });

  test("[C-029] a disabled entry is checked like an enabled one", async () => {
    const disabled = '[plugins.a]\nenabled = false\ncommand = "/a"\nstartup_timeout_ms = 0';
    expect(await tomlFailure(disabled)).toMatchObject({ key: "plugins.a.startup_timeout_ms" });
  });

  test("[C-030] the text has path, line, key, problem and advice in this order", async () => {
    const scenario = await makeScenario({
      workspace: { "config.toml": "\n[server]\nport = -1" },
    });
    const error = await scenario.failure();
    expect(error).toMatchObject({ code: "invalid_value", layer: "workspace", line: 3, column: 1 });
    expect(error.message).toBe(
      `${scenario.layer}/config.toml:3: server.port: must be at least 0 and at most 65535; fix it`,
    );
  });

  test("[C-030] a missing key is placed at its table", async () => {
    const toml = '[server]\n\n[plugins."a.b"]\ntrust = "trusted"\ncommand = "/a"';
    expect(await tomlFailure(toml)).toMatchObject({
      code: "missing_key",
      key: 'plugins."a.b".integrity',
      line: 3,
      advice: "add it",
    });
  });

  test.for([
    ["a syntax error", 'api = "hunter2'],
    ["a wrong type", '[server]\nport = "hunter2"'],
    ["a wrong choice", '[webfetch]\nprivate_addresses = "hunter2"'],
    [
      "a bad endpoint",
      '[providers."custom.a"]\nsource = "custom"\nadaptor = "openai-chat"\nendpoint = "hunter2"',
    ],
    ["a bad MCP address", '[mcp.servers.a]\nurl = "hunter2"'],
    ["a bad dollar", '[providers.a]\nsource = "models_dev"\napi_key = "hunter2$"'],
    ["a bad command", '[plugins.a]\ncommand = "hunter2"'],
    ["a bad profile", '[tools]\nprofile = "hunter2"'],
  ] as const)("[C-031] the error of %s does not hold the authored value", async ([, toml]) => {
    const error = await tomlFailure(toml);
    expect(JSON.stringify({ ...error, message: error.message, stack: error.stack })).not.toContain(
      "hunter2",
    );
    expect(error.cause).toBeUndefined();
  });

  test("[C-032] the first problem of several is the one reported", async () => {
    const error = await tomlFailure("[server]\nport = -1\nhost = 1\n[approval]\ntimeout_ms = 0");
    expect(error.key).toBe("server.host");
  });
});

function lines(count: number, line: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => line(index)).join("\n");
}
