import * as z from "zod";
import { Capabilities, HostGrant, Semver, TrustTier } from "./manifest.ts";
import { Empty, fromPlugin, notification, request, toPlugin } from "./method.ts";
import {
  boundedText,
  ContextId,
  Count,
  controlFreeText,
  Digest,
  JsonObject,
  PluginName,
  Revision,
  RunId,
  SessionId,
  StreamName,
  ToolCallId,
  ToolName,
} from "./scalars.ts";
import { isOneOf, ScratchName } from "./scratch-file.ts";
import {
  PermissionAction,
  ResourceBoundary,
  ResourceLifetime,
  ResourceSource,
  ToolDeclaration,
} from "./tool.ts";

/** First frame of every connection; nothing else is sent until it is answered (E-022…E-024). */
export const PluginInitialize = request(
  "plugin/initialize",
  () =>
    toPlugin({
      /** The kernel's; answer with the same. */
      protocol_version: z.string(),
      /** Of the kernel. */
      engine_version: z.string(),
      /** The plugin, as the kernel knows it. */
      plugin: z.object({
        name: PluginName,
        tier: TrustTier,
        /** Null without a manifest. */
        manifest_digest: Revision.nullable(),
      }),
      /** What this kernel does; a plugin does without what it does not. */
      capabilities: z.object({
        ping: z.boolean(),
        shutdown: z.boolean(),
        tools: z.boolean(),
        event_streaming: z.boolean(),
        event_publishing: z.boolean(),
        interception: z.boolean(),
        prepare: z.boolean(),
        progress: z.boolean(),
        /** Whether output may come as raw bytes behind its frame (E-016). */
        raw_output: z.boolean().optional(),
        /** Whether `host/tools/list_changed` is open to the plugin. */
        dynamic_tools: z.boolean(),
        /** Host grants in force, after tier and user grants. */
        services: z.array(HostGrant),
      }),
      /** The `config` table of the plugin's entry. */
      config: JsonObject,
      /** Absolute folders; `data` and `scratch` are private (E-048). */
      paths: z.object({
        /** Where the user works; a call names its own `cwd`. */
        workspace: z.string(),
        /** Survives restarts. */
        data: z.string(),
        /** Removed after exit. */
        scratch: z.string(),
      }),
      limits: z.object({
        /** Of one line, either way (E-002). */
        frame_bytes: Count,
        /** Unacknowledged output of one call, in a shared process (E-103). */
        progress_window_bytes: Count,
      }),
    }),
  () =>
    fromPlugin({
      /** The one that it speaks. */
      protocol_version: z.string(),
      /** Equal to `plugin.name` of the params. */
      name: z.string(),
      version: Semver,
      /** Absent: as in the manifest (E-035). */
      capabilities: Capabilities.optional(),
      /** Absent: as in the manifest; required without one (E-035). */
      tools: z.array(ToolDeclaration).max(128).optional(),
      manifest_digest: Revision.nullish(),
    }),
);

/** Are you there? Answered within 2 s (E-026). */
export const PluginPing = request(
  "plugin/ping",
  () => toPlugin({}),
  () => fromPlugin({}),
);
/** Finish or drop work and exit before the grace period ends (E-026). */
export const PluginShutdown = notification("plugin/shutdown", () => toPlugin({}));

const invocation = {
  tool: ToolName,
  session_id: SessionId,
  run_id: RunId,
  context_id: ContextId,
  invocation_id: ToolCallId,
  /** Checked against the tool's schema already (E-079). */
  arguments: JsonObject,
  /** Where relative paths of the call begin. */
  cwd: z.string(),
  /** The project's folder. */
  workspace_root: z.string(),
};

/** A resource that a dynamic preparation claims (E-082). */
export const PreparedResource = z.strictObject({
  action: PermissionAction,
  /** Null: a name-only check. */
  label: controlFreeText(1, 4096).nullable(),
  lifetime: ResourceLifetime.optional(),
  boundary: ResourceBoundary.optional(),
  source: ResourceSource.optional(),
});
export type PreparedResource = z.infer<typeof PreparedResource>;

/** Looks at the world before a call, without any effect on it; answers within 5 s (E-082…E-086). */
export const ToolsPrepare = request(
  "plugin/tools/prepare",
  () => toPlugin(invocation),
  () =>
    fromPlugin({
      /** Everything that the call will touch; permissions decide on each. */
      resources: z.array(PreparedResource).min(1).max(64),
      /** Normalized arguments; they replace the originals for identity and call. */
      arguments: JsonObject.optional(),
      /** `file:` and `path:` keys exclude each other over all plugins, any other key within this plugin (T 1.7). */
      serialize: z.array(boundedText(1, 512)).max(4).optional(),
      /** Opaque; good for one call. */
      prepared: boundedText(1, 8192).optional(),
      /** Names the call on a screen. */
      title: controlFreeText(1, 1024).optional(),
      /** Shown beside the title. */
      primary_argument: controlFreeText(0, 1024).optional(),
      /** Shown with an approval only; untrusted text. */
      detail: boundedText(0, 64 * 1024).optional(),
    }),
);
/**
 * Right before an approval that was waited for takes effect: does what was prepared still hold? If not, the answer is
 * `operation_changed` (E-088).
 */
export const ToolsRevalidate = request(
  "plugin/tools/revalidate",
  () =>
    toPlugin({
      invocation_id: ToolCallId,
      /** The token of the preparation. */
      prepared: z.string(),
    }),
  () => fromPlugin({}),
);
/** These tokens will never be used; let go of what they hold (E-084). */
export const ToolsDiscard = notification("plugin/tools/discard", () =>
  toPlugin({
    /** As the preparations gave them. */
    prepared: z.array(z.string()),
  }),
);

/** One answer of a tool: exactly one of `content`, `outputs`, `streamed` (E-092). */
export const ToolCallResult = fromPlugin({
  /** The whole output, of a tool with one stream. */
  content: z.string().optional(),
  /** The whole output, of a tool with named streams. */
  outputs: z
    .array(
      z.strictObject({
        /** One that the tool declares; each at most once. */
        stream: StreamName,
        text: z.string(),
      }),
    )
    .max(8)
    .optional(),
  /** The output was sent as `host/tools/progress`, or there is none. */
  streamed: z.literal(true).optional(),
  /** A complete result that the model should read as an error. */
  is_error: z.boolean().optional(),
  /** The outcome is `failed`; the output is complete. */
  failed: z.boolean().optional(),
  /** Shown to people in place of the tool's name. */
  title: boundedText(0, 1024).optional(),
  /** Shown to people in place of the output; at most 64 KiB. */
  display: z.string().optional(),
  /** Facts beside the output, which the model reads as JSON behind it; at most 64 KiB. */
  metadata: JsonObject.optional(),
  /** Media for the model: stored artifacts or files in the scratch folder (E-110). */
  attachments: z
    .array(
      z
        .strictObject({
          /** An `artifact://` URI. */
          artifact: boundedText(1, 1024).optional(),
          /** The kernel takes the file away once it has stored it. */
          scratch: ScratchName.optional(),
          /** Content that is something else fails the call. */
          mime: controlFreeText(1, 255).optional(),
          /** Shown with the result. */
          filename: controlFreeText(1, 512).optional(),
        })
        .refine(({ artifact, scratch }) => isOneOf(artifact, scratch), {
          error: "expected exactly one of artifact, scratch",
        }),
    )
    .max(256)
    .optional(),
}).refine(
  (result) =>
    [result.content, result.outputs, result.streamed].filter((v) => v !== undefined).length === 1,
  { error: "expected exactly one of content, outputs, streamed" },
);
export type ToolCallResult = z.infer<typeof ToolCallResult>;

/** Runs one call; its first act is to check that what was prepared still holds (E-090, E-091). */
export const ToolsCall = request(
  "plugin/tools/call",
  () =>
    toPlugin({
      ...invocation,
      /** First label of the first resource; null for a name-only check. */
      resource: z.string().nullable(),
      /** The token of the preparation; null without one. */
      prepared: z.string().nullable(),
      /** True: `plugin/tools/stdin` may follow. */
      stdin: z.boolean(),
      /** What the model will see of the output; a tool need not cut anything. */
      limits: z.object({
        /** Of the preview. */
        max_lines: Count,
        /** Of the preview. */
        max_bytes: Count,
      }),
    }),
  () => ToolCallResult,
);

/** Cumulative text bytes of one call that are captured (E-103). */
export const ToolsProgressAck = notification("plugin/tools/progress_ack", () =>
  toPlugin({
    invocation_id: ToolCallId,
    /** All of the call so far, text and raw. */
    bytes: Count,
  }),
);

/** Feeds a call's standard input; after `eof` or exit `accepted` is false (E-106). */
export const ToolsStdin = request(
  "plugin/tools/stdin",
  () =>
    toPlugin({
      invocation_id: ToolCallId,
      /** Base64 of at most 64 KiB. */
      data: z.string().optional(),
      /** Nothing comes after this. */
      eof: z.boolean(),
    }),
  () =>
    fromPlugin({
      /** False: the call is over, or its input is. */
      accepted: z.boolean(),
    }),
);

/** Channel `$host` of a shared host process: check and load a plugin's entry (E-014). */
export const ProcessAttach = request(
  "process/attach",
  () =>
    toPlugin({
      plugin: PluginName,
      /** Absolute path. */
      entry: z.string(),
      /** Null: any content. */
      sha256: Digest.nullable(),
    }),
  () => Empty,
);
/** Channel `$host`: the plugin is no longer served by this process. */
export const ProcessDetach = request(
  "process/detach",
  () => toPlugin({ plugin: PluginName }),
  () => Empty,
);
