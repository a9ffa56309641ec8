import * as z from "zod";
import {
  ApprovalRecord,
  ApprovalStatus,
  PermissionMode,
  RuleSource,
  TreeApprovalGrant,
  UserDecision,
} from "./approval.ts";
import { EventEnvelope, Revisions, RunSelection, SessionOrigin, SkippedEvent } from "./event.ts";
import { TrustTier } from "./manifest.ts";
import { ModelSelection } from "./message.ts";
import { Empty, notification, request } from "./method.ts";
import {
  ApprovalId,
  boundedText,
  ClientKey,
  Count,
  controlFreeText,
  Digest,
  EventName,
  EventValue,
  PluginName,
  Revision,
  RunId,
  SessionId,
  Timestamp,
  ToolCallId,
  WildcardPattern,
} from "./scalars.ts";
import { Concurrency, PermissionAction, PermissionEffect } from "./tool.ts";
import { CLIENT_PROTOCOL_VERSION } from "./version.ts";

export const SessionStatus = z.enum([
  "idle",
  "running",
  "completed",
  "failed",
  "cancelled",
  "interrupted",
]);
export type SessionStatus = z.infer<typeof SessionStatus>;

/** A session as lists show it (D 5). */
export const SessionMeta = z.object({
  session_id: SessionId,
  origin: SessionOrigin,
  cwd_identity: z.string(),
  creation_selection: RunSelection,
  ...Revisions.shape,
  title: z.string().nullable(),
  title_updated_seq: Count,
  last_event_seq: z.int().min(1),
  last_activity: Timestamp,
  status: SessionStatus,
  skipped_events: z.array(SkippedEvent),
  handle: z.string().optional(),
  access: z.enum(["owned", "free", "foreign"]).optional(),
});
export type SessionMeta = z.infer<typeof SessionMeta>;

export const EffectivePermission = z.object({
  action: PermissionAction,
  effect: PermissionEffect,
  source: RuleSource,
  patterns: z.array(
    z.object({ resource: z.string(), effect: PermissionEffect, source: RuleSource }),
  ),
});
export type EffectivePermission = z.infer<typeof EffectivePermission>;

const ModelEntry = z.object({
  key: z.string(),
  display_name: z.string(),
  available: z.boolean(),
  offline: z.boolean(),
  context_tokens: Count.nullable(),
  output_tokens: Count.nullable(),
  tool_calling: z.boolean(),
  variants: z.array(z.string()),
  default_variant: z.string().nullable(),
});
export type ModelEntry = z.infer<typeof ModelEntry>;

const AgentEntry = z.object({
  id: z.string(),
  description: z.string(),
  mode: z.enum(["primary", "subagent", "all", "internal"]),
  enabled: z.boolean(),
  runnable_as_root: z.boolean(),
  resolved_fallback: z.array(ModelSelection),
});
export type AgentEntry = z.infer<typeof AgentEntry>;

/** One slot of the active profile, known without a process (D-040). */
export const ToolEntry = z.object({
  name: z.string(),
  plugin: z.string(),
  tier: TrustTier,
  action: PermissionAction,
  concurrency: Concurrency,
  description: z.string(),
  shadowed: z.array(z.string()),
});
export type ToolEntry = z.infer<typeof ToolEntry>;

/** What can be run, by whom and with what; one coherent view (D-040). */
export const RuntimeSnapshot = z.object({
  snapshot_schema_version: z.literal(5),
  runtime_revision: Revision,
  models: z.array(ModelEntry).max(4096),
  agents: z.array(AgentEntry).max(4096),
  /** The agent a session without a choice gets; null when nothing is runnable. */
  default_agent: z.string().nullable(),
  tools: z.array(ToolEntry).max(4096),
});
export type RuntimeSnapshot = z.infer<typeof RuntimeSnapshot>;

const RuntimeChangeReason = z.enum([
  "startup",
  "catalog_refreshed",
  "catalog_fallback",
  "config_reloaded",
  "provider_connected",
  "provider_disconnected",
  "provider_store_changed",
  "provider_store_reloaded",
  "agent_reloaded",
]);

export const PluginState = z.enum([
  "disabled",
  "disconnected",
  "connecting",
  "connected",
  "failed",
]);
export type PluginState = z.infer<typeof PluginState>;

/** What is known of one plugin, whether its process runs or not (E-044). */
export const PluginStatus = z.object({
  plugin: z.string(),
  state: PluginState,
  reason: z.string().nullable(),
  tools: z.array(z.string()),
  tier: TrustTier,
  version: z.string().nullable(),
  source: z.enum(["bundled", "user", "workspace"]),
  pid: z.int().nullable(),
  activation: z.enum(["startup", "session", "tool"]),
  restarts: Count,
  in_flight: Count,
  /** Events and bus events that its full queue lost since the kernel opened (E-144). */
  dropped_events: Count,
  shadowed: z.array(z.object({ tool: z.string(), by: z.string() })),
  diagnostics: z.array(z.string()),
});
export type PluginStatus = z.infer<typeof PluginStatus>;

const session = { session_id: SessionId };
const nonblank = z.string().refine((text) => text.trim() !== "", { error: "must not be blank" });

export const Handshake = request(
  "handshake",
  () =>
    z.strictObject({
      protocol_version: z.literal(CLIENT_PROTOCOL_VERSION, {
        error: ({ input }) =>
          Number.isSafeInteger(input)
            ? `this daemon speaks version ${CLIENT_PROTOCOL_VERSION}, the client ${Number(input)}`
            : `expected the integer ${CLIENT_PROTOCOL_VERSION}`,
      }),
    }),
  () => z.object({ protocol_version: z.int() }),
);
export const SessionCreate = request(
  "session.create",
  () => z.strictObject({ selection: RunSelection }),
  () => z.object({ session: SessionMeta }),
);
export const SessionList = request(
  "session.list",
  () =>
    z.strictObject({
      /** At most so many, the newest. */
      limit: z.int().min(1).max(5000).optional(),
      status: z.array(SessionStatus).min(1).optional(),
      /** Only sessions with an event at or after this time. */
      since: Timestamp.optional(),
      /** True: of every directory that has a store, not of this one alone. */
      everywhere: z.boolean().optional(),
    }),
  () =>
    z.object({
      /** Newest first. */
      sessions: z.array(SessionMeta),
      /** There are more than these. */
      more: z.literal(true).optional(),
      /** One line for each session that could not be read. */
      diagnostics: z.array(z.string()),
    }),
);
export const SessionGet = request(
  "session.get",
  () => z.strictObject(session),
  () => z.object({ session: SessionMeta }),
);
/** Takes the tree lock, settles what a crash left open, makes the session writable (S 3.6). */
export const SessionResume = request(
  "session.resume",
  () => z.strictObject(session),
  () =>
    z.object({
      session: SessionMeta,
      /** Default of a next run: last agent and last model that committed a turn (S 5.2). */
      selection: RunSelection.nullable(),
    }),
);
export const SessionSetPermissionMode = request(
  "session.set_permission_mode",
  () => z.strictObject({ ...session, mode: PermissionMode }),
  () => Empty,
);
export const SessionPermissionGet = request(
  "session.permission.get",
  () => z.strictObject(session),
  () => z.object({ permissions: z.array(EffectivePermission), current_mode: PermissionMode }),
);
/** `source: "flag"` marks a rule that an explicit deny still beats (S-164). */
export const SessionPermissionSet = request(
  "session.permission.set",
  () =>
    z.strictObject({
      ...session,
      action: PermissionAction,
      resource: WildcardPattern,
      effect: PermissionEffect,
      source: z.enum(["user", "flag"]).optional(),
    }),
  () => z.object({ permissions: z.array(EffectivePermission) }),
);
export const ApprovalList = request(
  "approval.list",
  () => z.strictObject({ root_session_id: SessionId, status: ApprovalStatus.optional() }),
  () =>
    z.object({
      approvals: z.array(ApprovalRecord),
      /** What people have granted to the whole tree and is still in force, oldest first. */
      tree_grants: z.array(TreeApprovalGrant),
    }),
);
export const ApprovalRespond = request(
  "approval.respond",
  () =>
    z.strictObject({
      ...session,
      approval_id: ApprovalId,
      request_revision: z.int().min(1),
      operation_fingerprint: Digest,
      client_response_id: ClientKey,
      decision: UserDecision,
      feedback: boundedText(1, 4096).optional(),
    }),
  () => z.object({ client_response_id: ClientKey, approval: ApprovalRecord }),
);
export const RunStart = request(
  "run.start",
  () =>
    z.strictObject({
      ...session,
      client_run_id: ClientKey,
      selection: RunSelection,
      input: nonblank,
      /** The run is cancelled with reason `turns` when its turn of this number asks for calls; absent: no limit. */
      max_turns: z.int().min(1).optional(),
    }),
  () => z.object({ run_id: RunId }),
);
export const RunSteer = request(
  "run.steer",
  () => z.strictObject({ run_id: RunId, input: nonblank }),
  () => z.object({ accepted: z.boolean(), handled_reason: z.string().optional() }),
);
export const RunRecallSteer = request(
  "run.recall_steer",
  () => z.strictObject({ run_id: RunId }),
  () => z.object({ recalled: z.string().nullable() }),
);
/** `reason` is recorded on `run_cancelled`; idempotent (S-148). */
export const RunCancel = request(
  "run.cancel",
  () => z.strictObject({ run_id: RunId, reason: controlFreeText(1, 256).optional() }),
  () => z.object({ cancelled: z.boolean() }),
);
export const RunToolStdin = request(
  "run.tool_stdin",
  () =>
    z.strictObject({
      run_id: RunId,
      call_id: ToolCallId,
      /** Base64. */
      data: z.string().nullish(),
      eof: z.boolean(),
    }),
  () => z.object({ accepted: z.boolean() }),
);
/** Stored events after `cursor`, then a live tail, without loss or repetition between them (D-060). */
export const EventsSubscribe = request(
  "events.subscribe",
  () =>
    z.strictObject({
      ...session,
      cursor: Count.optional(),
      limit: z.int().min(1).max(5000).optional(),
      interactive: z.boolean().optional(),
      /** False: no output of running calls, only events. */
      outputs: z.boolean().optional(),
    }),
  () =>
    z.object({
      events: z.array(EventEnvelope),
      more: z.boolean().optional(),
      active_outputs: z
        .array(z.object({ call_id: ToolCallId, streams: z.array(z.string()) }))
        .optional(),
      live: z.boolean().optional(),
    }),
);
export const RuntimeSnapshotGet = request(
  "runtime.snapshot.get",
  () => z.strictObject({}),
  () => z.object({ snapshot: RuntimeSnapshot }),
);
/** What can be selected has changed; also the first thing that a daemon sends (D-024, D-051). */
export const RuntimeChanged = notification("runtime.changed", () =>
  z.object({
    previous_revision: Revision.nullable(),
    snapshot: RuntimeSnapshot,
    reasons: z.array(RuntimeChangeReason).min(1).max(9),
  }),
);
export const PluginsStatus = request(
  "plugins.status",
  () => z.strictObject({}),
  () => z.object({ plugins: z.array(PluginStatus) }),
);

/** Ends the plugin's process and starts it with its files as they are; earlier failures are forgotten (E-063). */
export const PluginsRestart = request(
  "plugins.restart",
  () => z.strictObject({ plugin: PluginName }),
  () => z.object({ plugin: PluginStatus }),
);
/** Takes the plugin's entry and the table `[tools]` from the configuration as it is now, drains and starts (E-064). */
export const PluginsReload = request(
  "plugins.reload",
  () => z.strictObject({ plugin: PluginName }),
  () => z.object({ plugin: PluginStatus }),
);

export const EventsSubscription = notification("events.subscription", () =>
  z.discriminatedUnion("type", [
    z.object({ type: z.literal("event"), event: EventEnvelope }),
    z.object({
      type: z.literal("gap"),
      session_id: SessionId,
      last_delivered_seq: Count,
    }),
  ]),
);
/** A bus event of a session that this connection follows: no replay, no cursor (D 6). */
export const EventsPlugin = notification("events.plugin", () =>
  z.object({ ...session, plugin: PluginName, name: EventName, payload: EventValue }),
);
const outputPosition = { call_id: ToolCallId, stream: z.string() };
const OutputDelta = z.object({ byte_offset: Count, data: z.string() });
export const ToolOutputSnapshot = notification("events.tool_output_snapshot", () =>
  z.object({
    ...outputPosition,
    session_id: SessionId,
    start_offset: Count,
    end_offset: Count,
    chunks: z.array(OutputDelta),
  }),
);
export const ToolOutputDelta = notification("events.tool_output_delta", () =>
  z.object({ ...outputPosition, session_id: SessionId, ...OutputDelta.shape }),
);
export const ToolOutputGap = notification("events.tool_output_gap", () =>
  z.object({ ...outputPosition, session_id: SessionId, next_offset: Count }),
);
