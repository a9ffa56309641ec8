import { safeText } from "../support/safe-text.ts";
import { FILE_NAME, parseLayer } from "./config-layer.ts";
import { tableEntries } from "./table-reader.ts";
import type { WorkspaceContent } from "./workspace-digest.ts";
import { GATED_TABLES } from "./workspace-trust.ts";

const MAX_LINES = 64;
const MAX_LINE_BYTES = 400;
const VARIABLE = /\$\{env:([A-Za-z_][A-Za-z0-9_]*)/g;

/**
 * What trust in a workspace would put to use, one line each: programs and servers first, then where requests go, what
 * is read of the environment, agents and skills (C 2.9). Empty when trust would change nothing.
 */
export async function describeWorkspace(
  layerDirectory: string,
  content: WorkspaceContent,
): Promise<string[]> {
  const bytes = content.get(FILE_NAME)?.bytes;
  const lines = [
    ...(bytes === undefined
      ? []
      : await describeConfig(layerDirectory, bytes).catch(() => [
          `a ${FILE_NAME} that is no valid TOML`,
        ])),
    ...names(content, /^agents\/([^/]*)\.md$/).map((name) => `the agent ${name}`),
    ...names(content, /^skills\/([^/]+)\/SKILL\.md$/).map((name) => `the skill ${name}`),
  ].map((line) => safeText(line, MAX_LINE_BYTES));
  const more = lines.length - MAX_LINES;
  return more > 0 ? [...lines.slice(0, MAX_LINES), `and ${more} more`] : lines;
}

async function describeConfig(layerDirectory: string, bytes: Uint8Array): Promise<string[]> {
  const { document } = await parseLayer("workspace", layerDirectory, bytes);
  const text = Buffer.from(bytes).toString("utf8");
  const variables = [...new Set([...text.matchAll(VARIABLE)].map(([, name]) => name ?? ""))];
  const told = new Set(["plugins", "mcp", "providers"]);
  return [
    ...entriesOf(document.value("plugins")).map(([name, entry]) => describePlugin(name, entry)),
    ...entriesOf(tableEntries(document.value("mcp"))?.get("servers")).map(([name, entry]) =>
      describeServer(name, entry),
    ),
    ...entriesOf(document.value("providers")).map(([name, entry]) => {
      const url = textOf(entry, "endpoint") ?? textOf(entry, "base_url");
      return `the provider ${name}${url === undefined ? "" : `, which is sent requests at ${url}`}`;
    }),
    ...(variables.length === 0
      ? []
      : [`a reading of the environment: ${variables.sort().join(", ")}`]),
    ...GATED_TABLES.filter((table) => document.has(table) && !told.has(table)).map(
      (table) => `the settings [${table}]`,
    ),
  ];
}

function describePlugin(name: string, entry: Entry): string {
  const from =
    program(entry) ??
    textOf(entry, "path") ??
    textOf(entry, "package") ??
    "settings of a shipped one";
  return `the plugin ${name}: ${from}`;
}

function describeServer(name: string, entry: Entry): string {
  return `the MCP server ${name}: ${program(entry) ?? textOf(entry, "url") ?? "unknown"}`;
}

type Entry = ReadonlyMap<string, unknown>;

/** The command line that would run. */
function program(entry: Entry): string | undefined {
  const command = textOf(entry, "command");
  if (command === undefined) return undefined;
  const args = entry.get("args");
  const words = Array.isArray(args) ? args.filter((word) => typeof word === "string") : [];
  return `runs ${[command, ...words].join(" ")}`;
}

function entriesOf(value: unknown): [string, Entry][] {
  return [...(tableEntries(value) ?? [])].map(([name, entry]) => [
    name,
    tableEntries(entry) ?? new Map(),
  ]);
}

function textOf(entry: Entry, key: string): string | undefined {
  const value = entry.get(key);
  return typeof value === "string" ? value : undefined;
}

function names(content: WorkspaceContent, pattern: RegExp): string[] {
  return [...content.keys()].flatMap((path) => pattern.exec(path)?.[1] ?? []).sort();
}
