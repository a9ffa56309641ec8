import { expect, test } from "vitest";
import { loadToml, makeScenario, tomlFailure } from "./scenario.ts";

const server = async (lines: string) =>
  (await loadToml(`[mcp.servers.docs]\n${lines}`)).config.mcp.servers.get("docs");

test("[C-189] a program has these defaults", async () => {
  expect(await server('command = "docs"')).toEqual({
    name: "docs",
    source: "user_file",
    transport: { kind: "stdio", command: "docs", args: [], env: {} },
    enabled: true,
    lazy: false,
    timeoutMs: 30_000,
  });
});

test("an address has these defaults", async () => {
  expect(await server('url = "http://localhost:1/mcp"')).toMatchObject({
    transport: { kind: "http", url: "http://localhost:1/mcp", headers: {}, oauth: "auto" },
  });
});

test.for([
  ["true", "auto"],
  ["{}", "auto"],
  ["false", "off"],
] as const)("[C-188] oauth = %s means %s", async ([oauth, expected]) => {
  expect(await server(`url = "https://a.example"\noauth = ${oauth}`)).toMatchObject({
    transport: { oauth: expected },
  });
});

test("an oauth table is decoded with its secret wrapped", async () => {
  const oauth =
    '{ client_id = "id", client_secret = "hush", client_metadata_url = "https://a.example/c", scopes = ["read"] }';
  const found = await server(`url = "https://a.example"\noauth = ${oauth}`);
  if (found?.transport.kind !== "http" || typeof found.transport.oauth === "string") {
    throw new Error("no oauth table");
  }
  const { clientSecret, ...rest } = found.transport.oauth;
  expect(clientSecret?.reveal()).toBe("hush");
  expect(rest).toEqual({
    clientId: "id",
    clientMetadataUrl: "https://a.example/c",
    scopes: ["read"],
  });
});

test.for([
  ["", ""],
  ['command = "a"\nurl = "https://a.example"', ""],
  ['command = ""', ".command"],
  ['command = "a"\nheaders = {}', ".headers"],
  ['command = "a"\noauth = true', ".oauth"],
  ['command = "a"\ncwd = ""', ".cwd"],
  ['command = "a"\ntimeout_ms = 0', ".timeout_ms"],
  ['command = "a"\nargs = [1]', ".args[0]"],
  ['url = "https://a.example"\nargs = []', ".args"],
  ['url = "https://a.example"\nenv = {}', ".env"],
  ['url = "ftp://a.example"', ".url"],
  ['url = "a.example"', ".url"],
  ['url = "https://a.example"\noauth = { client_secret = "s" }', ".oauth.client_id"],
  ['url = "https://a.example"\noauth = { client_id = "" }', ".oauth.client_id"],
  [
    'url = "https://a.example"\noauth = { client_metadata_url = "https://a.example/" }',
    ".oauth.client_metadata_url",
  ],
  ['url = "https://a.example"\noauth = { scopes = [""] }', ".oauth.scopes[0]"],
  ["enabled = false\ncommand = 1", ".command"],
] as const)(
  "[C-187] [C-188] [C-189] %j is one error that names server and reason",
  async ([lines, key]) => {
    const error = await tomlFailure(`[mcp.servers.docs]\n${lines}`);
    expect(error).toMatchObject({ code: "mcp_invalid", key: `mcp.servers.docs${key}` });
    expect(error.problem).toMatch(/^MCP server "docs": ./);
  },
);

test.for([
  ["é".repeat(64), true],
  [`${"é".repeat(64)}x`, false],
  ["a\\u0007", false],
] as const)("[C-006] server name %s: %s", async ([name, valid]) => {
  const toml = `[mcp.servers."${name}"]\ncommand = "a"`;
  const outcome = valid ? loadToml(toml).then(() => "ok") : tomlFailure(toml);
  expect(await outcome).toEqual(valid ? "ok" : expect.objectContaining({ code: "mcp_invalid" }));
});

test("servers keep their authored order, the workspace's own last", async () => {
  const entry = (name: string) => `[mcp.servers.${name}]\ncommand = "a"\n`;
  const scenario = await makeScenario({
    user: { "config.toml": entry("b") + entry("7") + entry("a") },
    workspace: { "config.toml": entry("c") + entry("7") },
  });
  const { servers } = (await scenario.load()).config.mcp;
  expect([...servers.values()].map(({ name, source }) => `${name} ${source}`)).toEqual([
    "b user_file",
    "7 workspace_file",
    "a user_file",
    "c workspace_file",
  ]);
});
