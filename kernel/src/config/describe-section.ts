import type { Config } from "./config.ts";
import { Secret } from "./secret.ts";

/** Values under these names may be credentials that nobody wrapped as such. */
const CREDENTIAL_TABLES = new Set(["headers", "env"]);

/** Sections by their names in the file; plugins' own tables are none of each other's business. */
const SECTIONS: Readonly<Record<string, (config: Config) => unknown>> = {
  server: ({ server }) => server,
  tool_output: ({ toolOutput }) => toolOutput,
  approval: ({ approval }) => approval,
  context_compaction: ({ contextCompaction }) => contextCompaction,
  prompt_caching: ({ promptCaching }) => promptCaching,
  session_title: ({ sessionTitle }) => sessionTitle,
  delegation: ({ delegation }) => delegation,
  messaging: ({ messaging }) => messaging,
  model_retry: ({ modelRetry }) => modelRetry,
  pricing: ({ pricing }) => pricing,
  budget: ({ budget }) => budget,
  context: ({ context }) => context,
  webfetch: ({ webfetch }) => webfetch,
  tools: ({ tools }) => tools,
  providers: ({ providers }) => providers,
  mcp: ({ mcp }) => mcp,
};

/**
 * One section as JSON with every default filled in: names as in the file, times in milliseconds (`…_ms`), every secret
 * null (E-121). Undefined when there is no section of that name.
 */
export function describeSection(config: Config, section: string): unknown {
  if (!Object.hasOwn(SECTIONS, section)) return undefined;
  return toJson(SECTIONS[section]?.(config));
}

function toJson(value: unknown): unknown {
  if (value === undefined || value === null || value instanceof Secret) return null;
  if (Array.isArray(value)) return value.map(toJson);
  // Keys of a map are names that somebody chose; those of a record are ours.
  if (value instanceof Map) return Object.fromEntries(mapEntries(value));
  if (typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return [name, CREDENTIAL_TABLES.has(key) ? namesOnly(member) : toJson(member)];
    }),
  );
}

function mapEntries(map: ReadonlyMap<unknown, unknown>): [string, unknown][] {
  return [...map].map(([key, member]) => [String(key), toJson(member)]);
}

function namesOnly(table: unknown): unknown {
  if (typeof table !== "object" || table === null) return null;
  return Object.fromEntries(Object.keys(table).map((name) => [name, null]));
}
