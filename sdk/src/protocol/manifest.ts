import * as z from "zod";
import { boundedText, controlFreeText, Digest, JsonObject, PluginName } from "./scalars.ts";
import { ToolDeclaration } from "./tool.ts";

/** What a plugin may ask of the kernel, granted by tier (E 7). */
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
  tools: z.boolean().optional(),
  resources: z.literal(false).optional(),
  subscribe_events: z.union([z.boolean(), z.array(controlFreeText(1, 64)).max(64)]).optional(),
  subscribe_bus: z.boolean().optional(),
  publish_bus: z.boolean().optional(),
  publish_session_events: z.boolean().optional(),
  intercept: z.array(HookName).max(13).optional(),
  dynamic_tools: z.boolean().optional(),
  host: z.array(HostGrant).max(32).optional(),
});
export type Capabilities = z.infer<typeof Capabilities>;

const SEMVER = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
export const Semver = z.string().max(64).regex(SEMVER, { error: "expected a semantic version" });

export const PluginRuntime = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("node"),
    /** Entry file, relative to the manifest's folder. */
    entry: boundedText(1, 1024),
    sha256: Digest.optional(),
    group: controlFreeText(1, 64).optional(),
  }),
  z.strictObject({
    kind: z.literal("exec"),
    command: boundedText(1, 4096),
    args: z.array(boundedText(0, 4096)).max(64).optional(),
    sha256: Digest.optional(),
  }),
]);
export type PluginRuntime = z.infer<typeof PluginRuntime>;

/** The file `cookie-plugin.json`: everything the kernel needs to know while no process runs (E-030, E-031). */
export const Manifest = z.strictObject({
  manifest: z.literal(1),
  name: PluginName,
  version: Semver,
  protocol: z.array(Semver).min(1).max(16),
  runtime: PluginRuntime,
  activation: z.enum(["startup", "session", "tool"]).optional(),
  prewarm: z.enum(["run", "stream", "never"]).optional(),
  restart: z.enum(["on_demand", "never"]).optional(),
  max_in_flight: z.int().min(1).max(256).optional(),
  idle_ms: z.int().min(0).optional(),
  env: z
    .strictObject({ inherit: z.union([z.literal("*"), z.array(controlFreeText(1, 256)).max(256)]) })
    .optional(),
  capabilities: Capabilities.optional(),
  tools: z.array(ToolDeclaration).max(128).optional(),
  instructions: boundedText(1, 16_384).optional(),
  provides: z.array(controlFreeText(1, 64)).max(16).optional(),
  kernel_config: z.array(controlFreeText(1, 64)).max(32).optional(),
  config_schema: JsonObject.optional(),
});
export type Manifest = z.infer<typeof Manifest>;

/** At most this many bytes of a manifest file are read (E-030). */
export const MAX_MANIFEST_BYTES = 1024 * 1024;

/** Where a plugin was loaded from, and with it what it may declare (E-112). */
export const TrustTier = z.enum(["first_party", "trusted", "untrusted"]);
export type TrustTier = z.infer<typeof TrustTier>;
