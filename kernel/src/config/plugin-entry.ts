import type { JsonObject } from "@cookie-agent/sdk/protocol";
import type { ConfigLayer } from "./config-error.ts";

/** What an entry starts; a first-party entry (`builtin.*`) only adjusts what the composition root brings. */
export type PluginLaunch =
  | { readonly kind: "command"; readonly command: string; readonly args: readonly string[] }
  | { readonly kind: "path"; readonly directory: string }
  /** `directory` is null when no installed package of that name was found. */
  | { readonly kind: "package"; readonly directory: string | null; readonly package: string }
  | { readonly kind: "builtin" };

/** One `[plugins.<name>]` table (C 2.6, 2.7). */
export interface PluginEntry {
  readonly name: string;
  readonly layer: ConfigLayer;
  readonly launch: PluginLaunch;
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the workspace root. */
  readonly cwd?: string;
  readonly enabled: boolean;
  readonly interceptionTimeoutMs: number;
  readonly startupTimeoutMs: number;
  readonly shutdownGraceMs: number;
  readonly toolTimeoutMs: number;
  /** Handed to the plugin as authored. */
  readonly config: JsonObject;
  readonly trust: "untrusted" | "trusted";
  /** `sha256:` and 64 hex digits, of the manifest. */
  readonly integrity?: string;
  readonly grants: readonly string[];
  readonly required: boolean;
}

/** What an entry means that does not say otherwise (C 2.6, E-040). */
export const ENTRY_DEFAULTS = {
  enabled: true,
  required: false,
  interceptionTimeoutMs: 2_000,
  startupTimeoutMs: 10_000,
  shutdownGraceMs: 3_000,
  toolTimeoutMs: 30_000,
  config: {},
  env: {},
  trust: "untrusted",
  grants: [],
} as const;
