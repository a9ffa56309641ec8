import type { Capabilities, HostGrant, Manifest, TrustTier } from "../protocol/manifest.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { ToolDefinition } from "./define-tool.ts";
import type { LogLevel } from "./host-client.ts";

/** A whole plugin: manifest facts and code in one place, so the two cannot drift (E-038). */
export interface PluginDefinition {
  /** Plugin id; equal to the configured name. */
  readonly name: string;
  /** Semantic version of the package. */
  readonly version: string;
  readonly tools: Readonly<Record<string, ToolDefinition>>;
  /** Shared host process; first-party plugins only. */
  readonly group?: string;
  /** Environment variables passed through from the kernel; tier-gated. */
  readonly env?: { readonly inherit: "*" | readonly string[] };
  readonly capabilities?: Capabilities;
  /** Section of the system prompt, at most 16 KiB; tier-gated. */
  readonly instructions?: string;
  readonly activation?: Manifest["activation"];
  readonly prewarm?: Manifest["prewarm"];
  readonly restart?: Manifest["restart"];
  /** Unanswered requests the plugin takes at once, 1 to 256. */
  readonly maxInFlight?: number;
  /** Idle time after which the process is stopped; 0 means never. */
  readonly idleMs?: number;
  /** Sections of the kernel's configuration the plugin wants to read. */
  readonly kernelConfig?: readonly string[];
  /** JSON Schema of the entry's `config` table. */
  readonly configSchema?: JsonObject;
  /** Runs once, before the first call; an error makes the plugin fail to start. */
  start?(context: PluginContext): void | Promise<void>;
  /** Runs once, before the process ends. */
  stop?(): void | Promise<void>;
}

/** What the kernel told the plugin when it started. */
export interface PluginContext {
  readonly config: JsonObject;
  readonly paths: {
    readonly workspace: string;
    /** Private, survives restarts. */
    readonly data: string;
    /** Private, removed after exit. */
    readonly scratch: string;
  };
  readonly tier: TrustTier;
  readonly engineVersion: string;
  /** Host grants in force; degrade instead of probing. */
  readonly services: readonly HostGrant[];
  log(level: LogLevel, message: string, fields?: JsonObject): void;
}

/** A defined plugin, ready for `serve`. */
export interface Plugin {
  readonly definition: PluginDefinition;
}

export function definePlugin(definition: PluginDefinition): Plugin {
  return Object.freeze({ definition });
}
