import type { Secret } from "./secret.ts";

export type ProviderConfig = CustomProviderConfig | ManagedProviderConfig;

/** Credentials as authored: `method` names the wire form, `values` its fields. */
export interface AuthoredAuth {
  readonly method: string;
  readonly values: Readonly<Record<string, Secret>>;
  readonly parameters: Readonly<Record<string, string>>;
}

/** `[providers."custom.<x>"]`: everything about it is in the file (C 5.4). */
export interface CustomProviderConfig {
  readonly source: "custom";
  /** `custom.<x>`. */
  readonly id: string;
  /** Absolute, without a trailing slash. */
  readonly endpoint: string;
  readonly adaptor: string;
  readonly setup: Readonly<Record<string, string>>;
  readonly auth: AuthoredAuth;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** By provider model id. */
  readonly models: ReadonlyMap<string, CustomModel>;
}

export interface CustomModel {
  readonly enabled: boolean;
  readonly displayName: string;
  /** The name the wire carries. */
  readonly wireModelId: string;
  readonly capabilities: ModelCapabilities;
  readonly defaults: ModelDefaults;
  readonly options: ModelOptions;
  readonly variants: ReadonlyMap<string, VariantDirective>;
  /** `base`, a variant id, or null for base behaviour. */
  readonly defaultVariant: string | null;
}

export type InputKind = "text" | "image" | "audio" | "pdf" | "video";
export type NativeReplay = "unsupported" | "optional" | "required";

export interface MediaLimits {
  readonly mimeTypes: readonly string[];
  readonly maxBytes: number;
  readonly maxCount: number;
}

export interface ModelCapabilities {
  readonly input: readonly InputKind[];
  readonly contextTokens: number;
  readonly outputTokens: number;
  readonly toolCalling: boolean;
  readonly parallelToolCalls: boolean;
  readonly structuredOutput: boolean;
  readonly reasoning: boolean;
  readonly temperature: boolean;
  readonly topP: boolean;
  readonly seed: boolean;
  /** Absent: derived from the adaptor. */
  readonly nativeReplay?: NativeReplay;
  readonly media: ReadonlyMap<Exclude<InputKind, "text">, MediaLimits>;
}

export type ToolChoice = "auto" | "none" | "required" | { readonly named: string };

export interface ModelDefaults {
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly maxOutputTokens?: number;
  readonly stop?: readonly string[];
  readonly toolChoice?: ToolChoice;
}

export interface ModelOptions {
  readonly beta?: readonly string[];
  readonly organization?: string;
  readonly project?: string;
  readonly store?: boolean;
  readonly apiPath?: string;
}

export type VariantReasoning =
  | { readonly type: "effort"; readonly value: string }
  | { readonly type: "toggle"; readonly enabled: boolean }
  | { readonly type: "budget_tokens"; readonly value: number };

/** How an authored variant changes the list it meets (C 5.7). */
export interface VariantDirective {
  readonly operation: "add" | "replace" | "disable";
  readonly displayName?: string;
  readonly wireModelId?: string;
  readonly defaults: ModelDefaults;
  readonly options: ModelOptions;
  readonly reasoning?: VariantReasoning;
}

/** `[providers.<id>]` of a catalog provider (C 5.3). */
export interface ManagedProviderConfig {
  readonly source: "models_dev";
  readonly id: string;
  readonly baseUrl?: string;
  readonly setup: Readonly<Record<string, string>>;
  readonly apiKey?: Secret;
  readonly authOverride?: AuthoredAuth;
  readonly shape?: "chat" | "responses";
  readonly modelOverrides: ReadonlyMap<string, ManagedModelOverride>;
}

export interface ManagedModelOverride {
  readonly enabled?: boolean;
  readonly displayName?: string;
  readonly wireModelId?: string;
  readonly defaults: ModelDefaults;
  readonly variants: ReadonlyMap<string, VariantDirective>;
  readonly defaultVariant?: string;
  readonly shape?: "chat" | "responses";
  readonly compaction: "unsupported" | "openai-responses-compact" | "azure-responses-compact";
}
