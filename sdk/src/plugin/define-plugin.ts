import type { Capabilities, HostGrant, Manifest, TrustTier } from "../protocol/manifest.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { ToolDefinition } from "./define-tool.ts";
import type { EventDefinition } from "./event-handlers.ts";
import type { HookHandlers } from "./hook-handlers.ts";
import type { LogLevel } from "./host-client.ts";
import type { ServiceHandlers } from "./plugin-services.ts";
import type { SetToolsOptions, ToolListOutcome, ToolTable } from "./tool-table.ts";

/** A whole plugin: manifest facts and code in one place, so the two cannot drift (E-038). */
export interface PluginDefinition extends EventDefinition {
  /** Plugin id; equal to the configured name. */
  readonly name: string;
  /** Semantic version of the package. */
  readonly version: string;
  /** By tool name, in snake_case and at most 64 bytes; each made with `defineTool`. */
  readonly tools?: Readonly<Record<string, ToolDefinition>>;
  /** What it looks at, changes or stops on its way; with hooks the process starts with a session (E-160). */
  readonly hooks?: HookHandlers;
  /** Name of the host process it shares with other plugins; first-party plugins only. */
  readonly group?: string;
  /** Environment variables passed through from the kernel; tier-gated. */
  readonly env?: { readonly inherit: "*" | readonly string[] };
  /** What it wants beyond answering calls, such as host services; `tools` and `intercept` follow from the code. */
  readonly capabilities?: Omit<Capabilities, "intercept">;
  /** Section of the system prompt, at most 16 KiB; tier-gated. */
  readonly instructions?: string;
  /** When the process starts: default `tool`, at first use; `session` when it hooks or subscribes (E-050 to E-052). */
  readonly activation?: Manifest["activation"];
  /** Start ahead of a call: default `stream`, when the model begins to name one of its tools (E-057). */
  readonly prewarm?: Manifest["prewarm"];
  /** After a crash: default `on_demand`, at the next use; `never` for an untrusted plugin. */
  readonly restart?: Manifest["restart"];
  /** Unanswered requests the plugin takes at once, 1 to 256; default 8, first-party 64. */
  readonly maxInFlight?: number;
  /** Idle milliseconds after which a process of activation `tool` is stopped; default 600000, 0: never. */
  readonly idleMs?: number;
  /** Sections of the kernel's configuration the plugin wants to read; tier-gated. */
  readonly kernelConfig?: readonly string[];
  /** JSON Schema of the entry's `config` table; a table that does not match keeps the plugin from loading. */
  readonly configSchema?: JsonObject;
  /** Kernel services that it implements, by name; `provides` follows from them. First-party plugins only (E-122). */
  readonly services?: Readonly<Record<string, ServiceHandlers>>;
  /**
   * Finds the tool of an unlisted name under one of the claims given to `setTools`; null: there is none. Answers within
   * 5 s (E-133).
   */
  resolveTool?(name: string): ToolDefinition | null | Promise<ToolDefinition | null>;
  /** Runs once, before the first call; an error makes the plugin fail to start. */
  start?(context: PluginContext): void | Promise<void>;
  /** Runs once, before the process ends. */
  stop?(): void | Promise<void>;
}

/** What the kernel told the plugin when it started. */
export interface PluginContext {
  /** The `config` table of the plugin's entry in the configuration. */
  readonly config: JsonObject;
  /** Absolute folders. */
  readonly paths: {
    /** The user's; a call names its own `cwd`. */
    readonly workspace: string;
    /** Private, survives restarts. */
    readonly data: string;
    /** Private, removed after exit. */
    readonly scratch: string;
  };
  /** Where the plugin was loaded from, which decides what it may declare. */
  readonly tier: TrustTier;
  /** Version of the kernel. */
  readonly engineVersion: string;
  /** Host grants in force; degrade instead of probing. */
  readonly services: readonly HostGrant[];
  /**
   * Reads a section of the kernel's configuration that `kernelConfig` lists: names as in the file, times in
   * milliseconds, every secret null. Only once `start` has returned; rejects with `not_granted` for any other section.
   */
  kernelConfig(section: string): Promise<unknown>;
  /**
   * Replaces the tools that the plugin adds to those above while it runs, at most 512; runs that start later see them.
   * Needs `capabilities: { dynamic_tools: true }`, which an untrusted plugin does not get (`not_granted`). During
   * `start` it resolves to null at once and the list is sent when the plugin is known (E-130).
   */
  setTools(tools: ToolTable, options?: SetToolsOptions): Promise<ToolListOutcome | null>;
  /** Writes to the kernel's log; at most 4 KiB of the message are kept. */
  log(level: LogLevel, message: string, fields?: JsonObject): void;
}

/** A defined plugin, ready for `serve`. */
export interface Plugin {
  readonly definition: PluginDefinition;
}

/** Checks nothing: a wrong declaration is reported when the manifest is written and when the plugin starts. */
export function definePlugin(definition: PluginDefinition): Plugin {
  return Object.freeze({ definition });
}
