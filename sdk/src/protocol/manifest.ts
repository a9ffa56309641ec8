import * as z from "zod";
import { boundedText, controlFreeText, Digest, JsonObject, PluginName } from "./scalars.ts";
import { ToolDeclaration } from "./tool.ts";

/**
 * What a plugin may ask of the kernel, granted by tier (E 7). `delegation`, `messaging`, `goals` and `skills` are reserved:
 * no kernel offers them yet.
 */
export const HostGrant = z.enum([
  "artifacts.write",
  "artifacts.read",
  "media",
  "session.info",
  "permission.ask",
  "skills.read",
  "skills.commit",
  "delegation",
  "messaging",
  "goals",
]);
export type HostGrant = z.infer<typeof HostGrant>;

/** The points at which plugins may look in or step in (E-160). */
export const HookName = z.enum([
  "user_before_input",
  "model_before_select",
  "agent_before_start",
  "model_before_request",
  "provider_before_headers",
  "provider_before_request",
  "provider_after_response",
  "message_end",
  "tool_before_call",
  "tool_after_result",
  "session_before_compact",
  "session_before_fork",
  "session_before_revert",
]);
export type HookName = z.infer<typeof HookName>;

/** Everything a plugin wants beyond answering calls; all default to false or empty (E-033). */
export const Capabilities = z.strictObject({
  /** Follows from the list of tools. */
  tools: z.boolean().optional(),
  /** Reserved. */
  resources: z.literal(false).optional(),
  /** Hear `plugin/event`: all of them, or these types (E-140). */
  subscribe_events: z.union([z.boolean(), z.array(controlFreeText(1, 64)).max(64)]).optional(),
  /** Hear `plugin/bus_event` (E-141). */
  subscribe_bus: z.boolean().optional(),
  /** `plugin/emit` reaches other plugins and clients (E-147). */
  publish_bus: z.boolean().optional(),
  /** `plugin/emit` is recorded in the session (E-147). */
  publish_session_events: z.boolean().optional(),
  /** Hooks it takes part in (E-160). */
  intercept: z.array(HookName).max(13).optional(),
  /** Lists tools while it runs (E-130). */
  dynamic_tools: z.boolean().optional(),
  /** Services of the kernel that it wants to use (E-118). */
  host: z.array(HostGrant).max(32).optional(),
});
export type Capabilities = z.infer<typeof Capabilities>;

const SEMVER = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
/** A version as semver has it. */
export const Semver = z.string().max(64).regex(SEMVER, { error: "expected a semantic version" });

/** How a plugin's process is started: `node` runs the entry with the kernel's own Node, `exec` any program. */
export const PluginRuntime = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("node"),
    /** Entry file, relative to the manifest's folder. */
    entry: boundedText(1, 1024),
    sha256: Digest.optional(),
    /** Shares a process with the plugins of this name; first-party only (E-014). */
    group: controlFreeText(1, 64).optional(),
  }),
  z.strictObject({
    kind: z.literal("exec"),
    /** A path from the manifest's folder, or a name on the `PATH` that the configuration gives it. */
    command: boundedText(1, 4096),
    /** As they are; no shell reads them. */
    args: z.array(boundedText(0, 4096)).max(64).optional(),
    sha256: Digest.optional(),
  }),
]);
export type PluginRuntime = z.infer<typeof PluginRuntime>;

/** The file `cookie-plugin.json`: everything the kernel needs to know while no process runs (E-030, E-031). */
export const Manifest = z.strictObject({
  /** Format of this file. */
  manifest: z.literal(1),
  /** Equal to the name under which the configuration lists the plugin. */
  name: PluginName,
  /** Of the package. */
  version: Semver,
  /** Versions of the plugin protocol that it speaks (E-021). */
  protocol: z.array(Semver).min(1).max(16),
  /** How its process is started. */
  runtime: PluginRuntime,
  /**
   * When it starts: with the kernel, with a session, or at the first use of a tool (E-050…E-052). Default `session`
   * where it hooks or subscribes, else `tool`.
   */
  activation: z.enum(["startup", "session", "tool"]).optional(),
  /** What starts it ahead of a call: the run, or its tool's name in the model's answer. Default `stream` (E-057). */
  prewarm: z.enum(["run", "stream", "never"]).optional(),
  /** After a crash. Default `on_demand`, at the next use; for an untrusted plugin `never` (E-063). */
  restart: z.enum(["on_demand", "never"]).optional(),
  /** Unanswered requests that it takes at once. Default 8, first-party 64 (E-052). */
  max_in_flight: z.int().min(1).max(256).optional(),
  /** A process of activation `tool` that is idle for so long is stopped. Default 600000; 0: never. */
  idle_ms: z.int().min(0).optional(),
  /** Beyond what the configuration sets, its environment is empty (E-046). */
  env: z
    .strictObject({
      /** Names of variables that it gets from the kernel's environment, or all of them; needs a grant. */
      inherit: z.union([z.literal("*"), z.array(controlFreeText(1, 256)).max(256)]),
    })
    .optional(),
  capabilities: Capabilities.optional(),
  /** What models can call. */
  tools: z.array(ToolDeclaration).max(128).optional(),
  /** A section of the system prompt; trusted plugins only (E-036). */
  instructions: boundedText(1, 16_384).optional(),
  /** Services of the kernel that it implements; first-party only (E-122). */
  provides: z.array(controlFreeText(1, 64)).max(16).optional(),
  /** Sections of the kernel's configuration that it wants to read; needs a grant (E-121). */
  kernel_config: z.array(controlFreeText(1, 64)).max(32).optional(),
  /** JSON Schema of the `config` table of its entry. */
  config_schema: JsonObject.optional(),
});
export type Manifest = z.infer<typeof Manifest>;

/** At most this many bytes of a manifest file are read (E-030). */
export const MAX_MANIFEST_BYTES = 1024 * 1024;

/** Where a plugin was loaded from, and with it what it may declare (E-112). */
export const TrustTier = z.enum(["first_party", "trusted", "untrusted"]);
export type TrustTier = z.infer<typeof TrustTier>;
