import { DecodeProblem } from "./decode-problem.ts";
import type { McpOauth, McpServerConfig, McpTransport } from "./mcp-server-config.ts";
import { Secret } from "./secret.ts";
import { TableReader, type TextRule } from "./table-reader.ts";
import { nonEmpty, plainText } from "./text-rules.ts";

const KEYS = [
  "command",
  "url",
  "args",
  "env",
  "cwd",
  "headers",
  "oauth",
  "enabled",
  "lazy",
  "timeout_ms",
];
const OAUTH_KEYS = ["client_id", "client_secret", "client_metadata_url", "scopes"];

/** Decodes `[mcp]`; every problem of a server is `mcp_invalid` naming server and reason (C 6.1). */
export function decodeMcp(
  value: unknown,
  source: McpServerConfig["source"],
): Map<string, McpServerConfig> {
  const servers = new Map<string, McpServerConfig>();
  const entries = new TableReader(value, ["mcp"], ["servers"]).table("servers");
  for (const name of entries?.keys() ?? []) {
    try {
      servers.set(name, decodeServer(name, entries?.value(name), source));
    } catch (error) {
      throw error instanceof DecodeProblem ? serverProblem(name, error) : error;
    }
  }
  return servers;
}

function decodeServer(
  name: string,
  value: unknown,
  source: McpServerConfig["source"],
): McpServerConfig {
  const reader = new TableReader(value, ["mcp", "servers", name], KEYS);
  const problem = plainText(1, 128)(name);
  if (problem !== undefined) throw reader.fail("invalid_value", [], `the name ${problem}`);
  return {
    name,
    source,
    transport: decodeTransport(reader),
    enabled: reader.boolean("enabled") ?? true,
    lazy: reader.boolean("lazy") ?? false,
    timeoutMs: reader.integer("timeout_ms", { min: 1 }) ?? 30_000,
  };
}

function decodeTransport(reader: TableReader): McpTransport {
  const command = reader.string("command", nonEmpty);
  const url = reader.string("url", httpUrl);
  if ((command === undefined) === (url === undefined)) {
    throw reader.fail("conflict", [], "expected exactly one of command, url");
  }
  const stray = (command === undefined ? ["args", "env", "cwd"] : ["headers", "oauth"]).find(
    (key) => reader.has(key),
  );
  if (stray !== undefined) {
    const owner = command === undefined ? "command" : "url";
    throw reader.fail("conflict", stray, `stands only with ${owner}`, "remove it");
  }
  if (url !== undefined) {
    return {
      kind: "http",
      url,
      headers: reader.texts("headers") ?? {},
      oauth: decodeOauth(reader),
    };
  }
  const cwd = reader.string("cwd", nonEmpty);
  return {
    kind: "stdio",
    command: reader.required("command", command),
    args: reader.strings("args") ?? [],
    env: reader.texts("env") ?? {},
    ...(cwd === undefined ? {} : { cwd }),
  };
}

function decodeOauth(reader: TableReader): "auto" | "off" | McpOauth {
  const authored = reader.value("oauth");
  if (authored === undefined || authored === true) return "auto";
  if (authored === false) return "off";
  const table = new TableReader(authored, reader.at("oauth"), OAUTH_KEYS);
  if ([...table.keys()].length === 0) return "auto";
  const clientId = table.string("client_id", nonEmpty);
  const clientSecret = table.string("client_secret", nonEmpty);
  const clientMetadataUrl = table.string("client_metadata_url", metadataUrl);
  if (clientSecret !== undefined && clientId === undefined) {
    throw table.fail("missing_key", "client_id", "client_secret needs client_id", "add it");
  }
  return {
    ...(clientId === undefined ? {} : { clientId }),
    ...(clientSecret === undefined ? {} : { clientSecret: Secret.of(clientSecret) }),
    ...(clientMetadataUrl === undefined ? {} : { clientMetadataUrl }),
    scopes: table.strings("scopes", nonEmpty) ?? [],
  };
}

const httpUrl: TextRule = (text) =>
  /^https?:\/\/[^/\s]/.test(text) && URL.canParse(text)
    ? undefined
    : "expected an absolute http or https URL";

const metadataUrl: TextRule = (text) =>
  /^https:\/\/[^/\s]/.test(text) && URL.canParse(text) && new URL(text).pathname !== "/"
    ? undefined
    : "expected an https URL with a path";

function serverProblem(name: string, { keyPath, problem, advice }: DecodeProblem): DecodeProblem {
  return new DecodeProblem({
    code: "mcp_invalid",
    keyPath,
    problem: `MCP server ${JSON.stringify(name.slice(0, 128))}: ${problem}`,
    advice,
  });
}
