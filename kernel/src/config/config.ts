import type { McpServerConfig } from "./mcp-server-config.ts";
import type { PluginEntry } from "./plugin-entry.ts";
import type { ProviderConfig } from "./provider-config.ts";

export type { McpServerConfig } from "./mcp-server-config.ts";
export type { PluginEntry } from "./plugin-entry.ts";

/** Both layers merged, every default filled in (C 2.6, 2.7). */
export interface Config {
  readonly server: ServerConfig;
  readonly toolOutput: ToolOutputConfig;
  readonly approval: ApprovalConfig;
  readonly contextCompaction: ContextCompactionConfig;
  readonly promptCaching: PromptCachingConfig;
  readonly sessionTitle: SessionTitleConfig;
  readonly delegation: DelegationConfig;
  readonly messaging: MessagingConfig;
  readonly modelRetry: ModelRetryConfig;
  readonly pricing: PricingConfig;
  readonly budget: BudgetConfig;
  readonly context: ContextConfig;
  readonly webfetch: WebfetchConfig;
  readonly tools: ToolsConfig;
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly mcp: { readonly servers: ReadonlyMap<string, McpServerConfig> };
  /** In authored order, which is interception order (C-021). */
  readonly plugins: readonly PluginEntry[];
}

export interface ServerConfig {
  readonly host: string;
  /** 0: the system chooses. */
  readonly port: number;
}

export interface ToolOutputConfig {
  readonly maxLines: number;
  readonly maxBytes: number;
  readonly maxRetainedBytes: number;
}

export interface ApprovalConfig {
  readonly timeoutMs: number;
}

export type CompactionTrigger =
  | { readonly kind: "percent"; readonly percent: number }
  | { readonly kind: "buffer_tokens"; readonly bufferTokens: number };

export interface ContextCompactionConfig {
  readonly auto: boolean;
  readonly trigger: CompactionTrigger;
  readonly maxSummaryBytes: number;
  /** Of the newest messages that stay beside the summary; 0: none. */
  readonly keepRecentTokens: number;
}

export type CacheTtl = "one_hour" | "five_minutes";

export interface PromptCachingConfig {
  readonly enabled: boolean;
  readonly systemTtl: CacheTtl;
  readonly toolsTtl: CacheTtl;
  readonly rollingTtl: CacheTtl;
}

export interface SessionTitleConfig {
  readonly maxChars: number;
  readonly maxInputMessages: number;
  readonly generateOnFirstTurn: boolean;
  readonly fallbackToInputExcerpt: boolean;
}

export interface DelegationConfig {
  readonly maxDepth: number;
  readonly maxConcurrency: number;
  readonly maxResidentSubagents: number;
  readonly idleEvictionAfterMs: number;
}

export interface MessagingConfig {
  readonly enabled: boolean;
  readonly maxBodyBytes: number;
  readonly maxPendingPerSession: number;
  /** Zero or less: no limit. */
  readonly maxHops: number;
  /** Zero: no limit. */
  readonly maxInflightPerPair: number;
}

export interface ModelRetryConfig {
  /** 0: none, negative: unlimited. */
  readonly standardRetries: number;
  /** 0: none, negative: unlimited. */
  readonly overloadRetries: number;
  readonly backoffCeilingMs: number;
}

/** Decimal strings in USD per million tokens, already known to be exact (C-051). */
export interface PriceRates {
  readonly inputPerMillionUsd?: string;
  readonly outputPerMillionUsd?: string;
  readonly reasoningPerMillionUsd?: string;
  readonly cacheReadPerMillionUsd?: string;
  readonly cacheWritePerMillionUsd?: string;
}

export interface PricingConfig {
  /** By model key. */
  readonly models: ReadonlyMap<string, PriceRates>;
}

/** Absent: no cap. */
export interface BudgetConfig {
  /** Decimal string, above zero. */
  readonly maxCostUsd?: string;
  readonly maxTokens?: number;
  readonly maxTurns?: number;
  readonly maxWallMs?: number;
}

export interface ContextConfig {
  readonly agentsMd: boolean;
  readonly agentsMdMaxBytes: number;
}

export interface WebfetchConfig {
  readonly privateAddresses: "allow" | "ask" | "deny";
}

export interface ToolsConfig {
  readonly profile: string;
  /** Tool names or `*` patterns. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Tool name to the plugin that serves it. */
  readonly implementations: ReadonlyMap<string, string>;
}
