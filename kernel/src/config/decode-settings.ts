import type {
  ApprovalConfig,
  CacheTtl,
  CompactionTrigger,
  Config,
  ContextCompactionConfig,
  ContextConfig,
  DelegationConfig,
  MessagingConfig,
  ModelRetryConfig,
  PromptCachingConfig,
  ServerConfig,
  SessionTitleConfig,
  ToolOutputConfig,
  WebfetchConfig,
} from "./config.ts";
import { decodeBudget } from "./decode-budget.ts";
import { decodePricing } from "./decode-pricing.ts";
import { decodeTools } from "./decode-tools.ts";
import { duration, parseDuration } from "./parse-duration.ts";
import { TableReader } from "./table-reader.ts";

/** The tables that hold settings; the others hold maps of named entries. */
export type Settings = {
  -readonly [K in keyof Omit<Config, "providers" | "mcp" | "plugins">]: Config[K];
};

type Decoders = {
  readonly [K in keyof Settings]: {
    readonly table: string;
    decode(value: unknown, table: string): Settings[K];
  };
};

const DECODERS: Decoders = {
  server: { table: "server", decode: decodeServer },
  toolOutput: { table: "tool_output", decode: decodeToolOutput },
  approval: { table: "approval", decode: decodeApproval },
  contextCompaction: { table: "context_compaction", decode: decodeContextCompaction },
  promptCaching: { table: "prompt_caching", decode: decodePromptCaching },
  sessionTitle: { table: "session_title", decode: decodeSessionTitle },
  delegation: { table: "delegation", decode: decodeDelegation },
  messaging: { table: "messaging", decode: decodeMessaging },
  modelRetry: { table: "model_retry", decode: decodeModelRetry },
  pricing: { table: "pricing", decode: decodePricing },
  tools: { table: "tools", decode: decodeTools },
  budget: { table: "budget", decode: decodeBudget },
  context: { table: "context", decode: decodeContext },
  webfetch: { table: "webfetch", decode: decodeWebfetch },
};

const SETTING_NAMES = Object.keys(DECODERS) as readonly (keyof Settings)[];

export const SETTINGS_TABLES: readonly string[] = SETTING_NAMES.map((name) => DECODERS[name].table);

/** Decodes the settings tables that a document has; keys they omit take the built-in defaults. */
export function decodeSettings(document: TableReader): Partial<Settings> {
  const settings: Partial<Settings> = {};
  for (const name of SETTING_NAMES) decodeSetting(name, document, settings);
  return settings;
}

/** What a setting is when no layer has its table. */
export function defaultSetting<K extends keyof Settings>(name: K): Settings[K] {
  return DECODERS[name].decode(new Map(), DECODERS[name].table);
}

function decodeSetting<K extends keyof Settings>(
  name: K,
  document: TableReader,
  settings: Partial<Settings>,
): void {
  const { table, decode } = DECODERS[name];
  if (document.has(table)) settings[name] = decode(document.value(table), table);
}

function decodeServer(value: unknown, table: string): ServerConfig {
  const reader = new TableReader(value, [table], ["host", "port"]);
  return {
    host: reader.string("host", loopback) ?? LOOPBACK,
    port: reader.integer("port", { min: 0, max: 65_535 }) ?? 7419,
  };
}

const LOOPBACK = "127.0.0.1";

/** There is no remote listener: remote use is a tunnel that ends on this machine (D-001). */
function loopback(host: string): string | undefined {
  return host === LOOPBACK
    ? undefined
    : `must be ${LOOPBACK} (from elsewhere use a tunnel that ends on this machine)`;
}

function decodeToolOutput(value: unknown, table: string): ToolOutputConfig {
  const reader = new TableReader(value, [table], ["max_lines", "max_bytes", "max_retained_bytes"]);
  const maxLines = reader.integer("max_lines", { min: 1 }) ?? 2000;
  const maxBytes = reader.integer("max_bytes", { min: 1 }) ?? 51_200;
  const maxRetainedBytes = reader.integer("max_retained_bytes", { min: 1 }) ?? 268_435_456;
  if (maxRetainedBytes < maxBytes) {
    const key = reader.has("max_retained_bytes") ? "max_retained_bytes" : "max_bytes";
    throw reader.fail("invalid_value", key, "max_retained_bytes must be at least max_bytes");
  }
  return { maxLines, maxBytes, maxRetainedBytes };
}

function decodeApproval(value: unknown, table: string): ApprovalConfig {
  const reader = new TableReader(value, [table], ["timeout_ms"]);
  return { timeoutMs: reader.integer("timeout_ms", { min: 1 }) ?? 30_000 };
}

function decodeContextCompaction(value: unknown, table: string): ContextCompactionConfig {
  const known = ["auto", "trigger", "buffer_tokens", "max_summary_bytes", "keep_recent_tokens"];
  const reader = new TableReader(value, [table], known);
  return {
    auto: reader.boolean("auto") ?? true,
    trigger: decodeTrigger(reader),
    maxSummaryBytes:
      reader.integer("max_summary_bytes", { min: 1, max: 2 * 1024 * 1024 }) ?? 262_144,
    keepRecentTokens: reader.integer("keep_recent_tokens", { min: 0 }) ?? 16_384,
  };
}

function decodeTrigger(reader: TableReader): CompactionTrigger {
  const alias = reader.integer("buffer_tokens", { min: 1 });
  const trigger = reader.table("trigger", ["percent", "buffer_tokens"]);
  if (trigger === undefined) {
    return alias === undefined
      ? { kind: "percent", percent: 70 }
      : { kind: "buffer_tokens", bufferTokens: alias };
  }
  if (alias !== undefined) {
    throw reader.fail("conflict", "buffer_tokens", "excludes trigger", "remove one of them");
  }
  const percent = trigger.integer("percent", { min: 1, max: 99 });
  const bufferTokens = trigger.integer("buffer_tokens", { min: 1 });
  if (percent !== undefined && bufferTokens === undefined) return { kind: "percent", percent };
  if (bufferTokens !== undefined && percent === undefined) {
    return { kind: "buffer_tokens", bufferTokens };
  }
  throw reader.fail(
    percent === undefined ? "missing_key" : "conflict",
    "trigger",
    "expected exactly one of percent, buffer_tokens",
  );
}

function decodePromptCaching(value: unknown, table: string): PromptCachingConfig {
  const known = ["enabled", "system_ttl", "tools_ttl", "rolling_ttl"];
  const reader = new TableReader(value, [table], known);
  const ttl = (key: string): CacheTtl | undefined =>
    reader.oneOf(key, ["one_hour", "five_minutes"]);
  const caching: PromptCachingConfig = {
    enabled: reader.boolean("enabled") ?? true,
    systemTtl: ttl("system_ttl") ?? "one_hour",
    toolsTtl: ttl("tools_ttl") ?? "one_hour",
    rollingTtl: ttl("rolling_ttl") ?? "five_minutes",
  };
  if (!caching.enabled) return caching;
  const order = ["tools_ttl", "system_ttl", "rolling_ttl"];
  const ttls = [caching.toolsTtl, caching.systemTtl, caching.rollingTtl];
  for (let index = 1; index < ttls.length; index += 1) {
    if (ttls[index] !== "one_hour" || ttls[index - 1] !== "five_minutes") continue;
    // Of the two keys, name one that is authored.
    const pair = [order[index] ?? "", order[index - 1] ?? ""];
    throw reader.fail(
      "invalid_value",
      pair.find((key) => reader.has(key)) ?? table,
      "one_hour may not follow five_minutes in the order tools, system, rolling",
    );
  }
  return caching;
}

function decodeSessionTitle(value: unknown, table: string): SessionTitleConfig {
  const reader = new TableReader(
    value,
    [table],
    ["max_chars", "max_input_messages", "generate_on_first_turn", "fallback_to_input_excerpt"],
  );
  return {
    maxChars: reader.integer("max_chars", { min: 1 }) ?? 80,
    maxInputMessages: reader.integer("max_input_messages", { min: 1 }) ?? 4,
    generateOnFirstTurn: reader.boolean("generate_on_first_turn") ?? true,
    fallbackToInputExcerpt: reader.boolean("fallback_to_input_excerpt") ?? true,
  };
}

function decodeDelegation(value: unknown, table: string): DelegationConfig {
  const reader = new TableReader(
    value,
    [table],
    ["max_depth", "max_concurrency", "max_resident_subagents", "idle_eviction_after"],
  );
  return {
    maxDepth: reader.integer("max_depth", { min: 1 }) ?? 3,
    maxConcurrency: reader.integer("max_concurrency", { min: 1 }) ?? 4,
    maxResidentSubagents: reader.integer("max_resident_subagents", { min: 0 }) ?? 20,
    idleEvictionAfterMs: parseDuration(reader.string("idle_eviction_after", duration) ?? "1h") ?? 0,
  };
}

function decodeMessaging(value: unknown, table: string): MessagingConfig {
  const reader = new TableReader(
    value,
    [table],
    ["enabled", "max_body_bytes", "max_pending_per_session", "max_hops", "max_inflight_per_pair"],
  );
  return {
    enabled: reader.boolean("enabled") ?? true,
    maxBodyBytes: reader.integer("max_body_bytes", { min: 0 }) ?? 32_768,
    maxPendingPerSession: reader.integer("max_pending_per_session", { min: 0 }) ?? 32,
    maxHops: reader.integer("max_hops") ?? 0,
    maxInflightPerPair: reader.integer("max_inflight_per_pair", { min: 0 }) ?? 4,
  };
}

function decodeModelRetry(value: unknown, table: string): ModelRetryConfig {
  const reader = new TableReader(
    value,
    [table],
    ["standard_retries", "overload_retries", "backoff_ceiling_ms"],
  );
  return {
    standardRetries: reader.integer("standard_retries") ?? 3,
    overloadRetries: reader.integer("overload_retries") ?? 5,
    backoffCeilingMs: reader.integer("backoff_ceiling_ms", { min: 1 }) ?? 60_000,
  };
}

function decodeContext(value: unknown, table: string): ContextConfig {
  const reader = new TableReader(value, [table], ["agents_md", "agents_md_max_bytes"]);
  return {
    agentsMd: reader.boolean("agents_md") ?? true,
    agentsMdMaxBytes: reader.integer("agents_md_max_bytes", { min: 1, max: 262_144 }) ?? 32_768,
  };
}

function decodeWebfetch(value: unknown, table: string): WebfetchConfig {
  const reader = new TableReader(value, [table], ["private_addresses"]);
  return {
    privateAddresses: reader.oneOf("private_addresses", ["allow", "ask", "deny"]) ?? "allow",
  };
}
