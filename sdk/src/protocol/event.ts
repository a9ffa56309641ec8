import * as z from "zod";
import {
  ApprovalDecision,
  ApprovalRequest,
  OverlayRule,
  PermissionRule,
  TreeApprovalGrant,
  UserDecision,
} from "./approval.ts";
import {
  Checkpoint,
  CheckpointBoundaries,
  CheckpointBudgets,
  RehydratedFile,
} from "./compaction.ts";
import {
  ModelErrorSummary,
  ModelSelection,
  ModelTurn,
  ResolvedModel,
  ToolCallError,
  ToolOutcome,
  ToolPresentation,
  ToolResult,
  Usage,
} from "./message.ts";
import {
  AgentId,
  ApprovalId,
  AttemptId,
  boundedText,
  ClientKey,
  Count,
  controlFreeText,
  Digest,
  EventName,
  EventValue,
  InternalAgentInvocationId,
  InternalAgentRunId,
  Revision,
  RunId,
  SessionId,
  Timestamp,
  ToolCallId,
} from "./scalars.ts";
import { OutputDeclaration } from "./tool.ts";

const Seq = z.int().min(1);
const nonblank = z.string().refine((text) => text.trim() !== "", { error: "must not be blank" });

/** Where a session comes from; trees are known from this alone (S-011). */
export const SessionOrigin = z.discriminatedUnion("type", [
  z.object({ type: z.literal("root") }),
  z.object({
    type: z.literal("delegated"),
    root_session_id: SessionId,
    parent_session_id: SessionId,
    parent_run_id: RunId,
    parent_tool_call_id: ToolCallId,
    invocation_id: boundedText(1, 128),
    depth: z.int().min(1),
  }),
]);
export type SessionOrigin = z.infer<typeof SessionOrigin>;

/** What a `plugin_diagnostic` can be about (E-152, S 2.3). */
export const PluginDiagnosticKind = z.enum([
  "event_drop",
  "interception_timeout",
  "interception_crash",
  "hook_blocked",
  "oversized_event",
  "invalid_modification",
  "unsupported_capability",
  "context_mismatch",
  "rate_limited",
  "compaction_failed",
  "recovery_failed",
  "recovery_disabled",
]);
export type PluginDiagnosticKind = z.infer<typeof PluginDiagnosticKind>;

export const RunSelection = z.object({ agent: AgentId, model: ModelSelection });
export type RunSelection = z.infer<typeof RunSelection>;

/** The seven revisions a run was admitted with (S 0.3). */
export const Revisions = z.object({
  runtime_revision: Revision,
  catalog_revision: Revision,
  provider_state_revision: Revision,
  model_revision: Revision,
  agent_revision: Revision,
  recipe_registry_revision: Revision,
  manifest_revision: Revision,
});
export type Revisions = z.infer<typeof Revisions>;

/** An agent as it was when the session or run began; schema 6 (S 0.3). */
export const AgentSnapshot = z.object({
  agent: AgentId,
  schema: z.literal(6),
  mode: z.enum(["primary", "subagent", "all", "internal"]),
  description: boundedText(1, 512),
  document_source: z.enum(["built_in", "user", "workspace"]),
  document_fingerprint: Digest,
  composed_prompt: boundedText(1, 128 * 1024),
  prompt_fingerprint: Digest,
  max_output_tokens: Count,
  permissions: z.array(PermissionRule).max(256),
  fallback_chain: z.array(ModelSelection).min(1).max(256),
  selected_suffix_start: Count,
});
export type AgentSnapshot = z.infer<typeof AgentSnapshot>;

export const TitleChange = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("user_set"),
    title: controlFreeText(1, 512),
    client_rename_id: ClientKey,
  }),
  z.object({ kind: z.literal("user_clear"), client_rename_id: ClientKey }),
  z.object({ kind: z.literal("user_reset"), client_rename_id: ClientKey }),
  z.object({
    kind: z.literal("internal_agent_set"),
    title: controlFreeText(1, 512),
    invocation_id: InternalAgentInvocationId,
  }),
  z.object({ kind: z.literal("fallback_set"), title: controlFreeText(1, 512) }),
]);
export type TitleChange = z.infer<typeof TitleChange>;

/** Which part of which committed turn a tool call answers. */
export const ToolCallOwner = z.object({
  model_turn_seq: Seq,
  content_index: Count,
  model_call_id: boundedText(1, 512),
  provider_item_id: boundedText(1, 512).nullable().default(null),
});
export type ToolCallOwner = z.infer<typeof ToolCallOwner>;

export const RunError = z.object({
  code: boundedText(1, 128),
  message: boundedText(1, 4096),
  model_error: ModelErrorSummary.nullable(),
});
export type RunError = z.infer<typeof RunError>;

/** What an internal agent is asked for (S 11). */
export const InternalAgentKind = z.enum(["approval", "context_compaction", "session_title"]);
export type InternalAgentKind = z.infer<typeof InternalAgentKind>;

/** Why an internal agent gave no answer; `model_error` when a model said why (S 11.1). */
export const InternalAgentFailure = z.object({
  code: z.enum([
    "agent_unavailable",
    "input_too_large",
    "invalid_non_text_output",
    "output_too_large",
    "model_failure",
    "timeout",
  ]),
  message: boundedText(1, 4096),
  retryable: z.boolean(),
  model_error: ModelErrorSummary.nullable(),
});
export type InternalAgentFailure = z.infer<typeof InternalAgentFailure>;

const internalRun = {
  invocation_id: InternalAgentInvocationId,
  internal_run_id: InternalAgentRunId,
};

export const ReplayDisposition = z.enum([
  "replayed",
  "no_artifact",
  "discarded_foreign_adapter",
  "discarded_foreign_model_selection",
  "discarded_foreign_variant",
  "discarded_invalid_payload",
  "reconstructed_normalized_history",
]);

function payload<T extends string, S extends z.ZodRawShape>(type: T, shape: S) {
  return z.object({ type: z.literal(type), ...shape });
}

/**
 * Every event type that can be written, one schema each (S 2.3). Adding a type or an optional field is the only
 * way this list changes (S-060).
 */
export const EVENT_PAYLOADS = {
  /** A session began; the first event of every log. */
  session_created: payload("session_created", {
    origin: SessionOrigin,
    cwd_identity: boundedText(1, 4096),
    creation_selection: RunSelection,
    creation_agent: AgentSnapshot,
    ...Revisions.shape,
    short_id: boundedText(1, 64).optional(),
  }),
  /** The session's own rules changed; carries all of them. */
  session_permission_overlay_set: payload("session_permission_overlay_set", {
    overlay: z.object({ rules: z.array(OverlayRule).max(256) }),
  }),
  /** The title changed. */
  session_title_committed: payload("session_title_committed", {
    change: TitleChange,
    input_through_seq: Count,
  }),
  /** Texts from AGENTS.md that the models of this session get to read. */
  agent_md_loaded: payload("agent_md_loaded", {
    entries: z
      .array(
        z.object({
          source: z.enum(["user", "workspace"]),
          content: z.string(),
          truncated: z.boolean(),
          original_bytes: Count,
        }),
      )
      .min(1)
      .max(2),
  }),
  /** Input came during a run and waits to be taken up. */
  user_input_admitted: payload("user_input_admitted", { input: nonblank }),
  /** Input that the next request to the model contains. */
  user_input_submitted: payload("user_input_submitted", { input: nonblank }),
  /** A request first contains that input. */
  user_input_applied: payload("user_input_applied", { user_input_seq: Seq }),
  /** Waiting input was taken back. */
  user_input_recalled: payload("user_input_recalled", { user_input_seq: Seq, input: z.string() }),
  /** A run was admitted, with everything it was bound to. */
  run_started: payload("run_started", {
    client_run_id: ClientKey,
    selection: RunSelection,
    agent: AgentSnapshot,
    ...Revisions.shape,
    selected_suffix: z.array(ResolvedModel).min(1).max(256),
    input_through_seq: Count,
    /** Digest of input and selection, for idempotency after a restart (S-122). */
    request_digest: Digest,
  }),
  /** The run came to rest: the model asked for nothing more. */
  run_completed: payload("run_completed", { final_text: z.string().nullable() }),
  /** The run ended with an error. */
  run_failed: payload("run_failed", { error: RunError }),
  /** The run was stopped by somebody, by a limit or by a permission. */
  run_cancelled: payload("run_cancelled", { reason: boundedText(1, 256).nullable() }),
  /** The kernel ended during the run; written when the session is next opened. */
  run_interrupted: payload("run_interrupted", { reason: boundedText(1, 256).nullable() }),
  /** A model is about to be asked. */
  model_attempt_started: payload("model_attempt_started", {
    attempt_id: AttemptId,
    attempt_ordinal: z.int().min(1),
    fallback_index: Count,
    retry_ordinal: Count,
    resolved_model: ModelSelection,
    prompt_fingerprint: Digest,
  }),
  /** The request is complete and goes out. */
  model_request_prepared: payload("model_request_prepared", {
    attempt_id: AttemptId,
    prompt_fingerprint: Digest,
  }),
  /** What of earlier models' own data went into the request. */
  model_replay_evaluated: payload("model_replay_evaluated", {
    attempt_id: AttemptId,
    ordered_decisions: z
      .array(z.object({ history_index: Count, disposition: ReplayDisposition }))
      .max(4096),
  }),
  /** A piece of the answer as it streams. */
  text_delta: payload("text_delta", { attempt_id: AttemptId, text: z.string() }),
  /** A piece of the reasoning as it streams. */
  reasoning_delta: payload("reasoning_delta", { attempt_id: AttemptId, text: z.string() }),
  /** The attempt failed or was cancelled; what it streamed does not count. */
  attempt_abandoned: payload("attempt_abandoned", {
    attempt_id: AttemptId,
    error: ModelErrorSummary.nullable(),
    /** True: media that came since this model's last answer are left out of what it is asked from now on. */
    media_refused: z.boolean().optional(),
  }),
  /** The model's complete answer, with the calls it asks for. */
  model_turn_committed: payload("model_turn_committed", {
    attempt_id: AttemptId,
    model_turn_seq: Seq,
    resolved_model: ModelSelection,
    input_through_seq: Count,
    turn: ModelTurn,
    warnings: z.array(boundedText(1, 1024)).max(256),
  }),
  /** What the turn used and is estimated to cost. */
  model_usage_recorded: payload("model_usage_recorded", {
    model_turn_seq: Seq,
    agent_id: AgentId,
    resolved_model: ModelSelection,
    usage: Usage,
    /** Integer pico-dollars as a decimal string would lose no digit; null = unpriced. */
    estimated_cost_pico_usd: Count.nullable().default(null),
  }),
  /** The next model of the agent's list takes over. */
  model_fallback: payload("model_fallback", {
    from: ModelSelection,
    to: ModelSelection,
    from_fallback_index: Count,
    to_fallback_index: z.int().min(1),
    attempts_on_from: z.int().min(1),
    error: ModelErrorSummary,
  }),
  /** A call the model asked for, before any decision about it. */
  tool_call_started: payload("tool_call_started", {
    tool_call_id: ToolCallId,
    owner: ToolCallOwner,
    tool: boundedText(1, 512),
    presentation: ToolPresentation,
    operation_fingerprint: Digest,
    output: OutputDeclaration,
  }),
  /** News of a running call, for people; its output is not part of it. */
  tool_call_progress: payload("tool_call_progress", {
    tool_call_id: ToolCallId,
    message: boundedText(0, 4096),
    display: boundedText(0, 4096).optional(),
  }),
  /** A call got input; the input is not recorded. */
  tool_stdin_submitted: payload("tool_stdin_submitted", {
    tool_call_id: ToolCallId,
    byte_count: Count,
  }),
  /** A call ended, with what the model reads of it. */
  tool_call_terminated: payload("tool_call_terminated", {
    tool_call_id: ToolCallId,
    owner: ToolCallOwner,
    outcome: ToolOutcome,
    result: ToolResult.nullable(),
    error: ToolCallError.nullable().default(null),
  }),
  /** A call needs an approval. */
  approval_requested: payload("approval_requested", { request: ApprovalRequest }),
  /** It does because the same call came again and again. */
  approval_doom_loop_detected: payload("approval_doom_loop_detected", {
    approval_id: ApprovalId,
    operation_fingerprint: Digest,
    repetitions: z.int().min(4),
  }),
  /** What rules, mode or an internal agent made of it. */
  approval_evaluated: payload("approval_evaluated", {
    approval_id: ApprovalId,
    decision: ApprovalDecision,
  }),
  /** A person has to decide. */
  approval_escalated: payload("approval_escalated", {
    approval_id: ApprovalId,
    reason_code: z.literal("escalated"),
  }),
  /** A person decided. */
  approval_user_decision_recorded: payload("approval_user_decision_recorded", {
    approval_id: ApprovalId,
    client_response_id: ClientKey,
    decision: UserDecision,
    feedback: boundedText(1, 4096).nullable(),
  }),
  /** The decision took effect. */
  approval_finalized: payload("approval_finalized", {
    approval_id: ApprovalId,
    decision: ApprovalDecision,
  }),
  /** There is nothing to decide any more. */
  approval_cancelled: payload("approval_cancelled", {
    approval_id: ApprovalId,
    reason_code: z.enum([
      "user_cancelled",
      "request_cancelled",
      "approval_expired",
      "operation_changed",
      "prepared_capability_lost",
    ]),
  }),
  /** Plugins rewrote what a person said; stands right before the input that they made of it (E-167). */
  user_input_transformed: payload("user_input_transformed", {
    /** As it was said. */
    original_input: nonblank,
    /** As it is submitted or, while a run runs, admitted. */
    input: nonblank,
  }),
  /** A plugin put a message before the submitted input (E-167). */
  message_injected: payload("message_injected", {
    role: z.enum(["system", "user", "assistant"]),
    input: nonblank,
  }),
  plugin_diagnostic: payload("plugin_diagnostic", {
    plugin: boundedText(1, 128),
    /** One of `PluginDiagnosticKind`; a reader takes others of a later version too. */
    kind: boundedText(1, 64),
    message: boundedText(1, 1024),
    count: z.int().min(1),
  }),
  /** What a plugin published for the record. */
  plugin_event_added: payload("plugin_event_added", {
    plugin: boundedText(1, 128),
    name: EventName,
    payload: EventValue,
  }),
  /** Events behind `through_seq` and before this one no longer count (S 2.6); none is removed. */
  session_reverted: payload("session_reverted", { through_seq: Seq }),
  /** The engine asks a model something on its own behalf, beside the conversation. */
  internal_agent_started: payload("internal_agent_started", {
    ...internalRun,
    kind: InternalAgentKind,
    backend: z.discriminatedUnion("type", [
      z.object({ type: z.literal("model"), resolved_model: ModelSelection }),
      /** No model can answer. */
      z.object({
        type: z.literal("builtin"),
        name: boundedText(1, 64),
        revision: boundedText(1, 64),
      }),
    ]),
    call: z.object({
      name: boundedText(1, 64),
      input_summary: boundedText(1, 1024),
      input_digest: Digest,
    }),
  }),
  /** What its model used and is estimated to cost; once per model that answered. */
  internal_agent_usage_recorded: payload("internal_agent_usage_recorded", {
    internal_run_id: InternalAgentRunId,
    kind: InternalAgentKind,
    agent_id: AgentId,
    resolved_model: ModelSelection,
    usage: Usage,
    /** As in `model_usage_recorded`. */
    estimated_cost_pico_usd: Count.nullable().default(null),
  }),
  /** Its next model takes over. */
  internal_agent_fallback: payload("internal_agent_fallback", {
    ...internalRun,
    from: ModelSelection,
    to: ModelSelection,
    failure: InternalAgentFailure,
    attempts: z.int().min(1),
  }),
  /** It answered. */
  internal_agent_completed: payload("internal_agent_completed", {
    ...internalRun,
    result: z.object({ output_summary: boundedText(1, 1024), output_digest: Digest }),
  }),
  /** It gave no usable answer. */
  internal_agent_failed: payload("internal_agent_failed", {
    ...internalRun,
    failure: InternalAgentFailure,
  }),
  /** Whoever asked it no longer wanted to know. */
  internal_agent_cancelled: payload("internal_agent_cancelled", {
    ...internalRun,
    reason: boundedText(1, 256).nullable(),
  }),
  /** The kernel ended while it was asked; written when the session is next opened. */
  internal_agent_interrupted: payload("internal_agent_interrupted", {
    ...internalRun,
    reason: boundedText(1, 256).nullable(),
  }),
  /** Earlier messages gave way to what stands for them. */
  context_checkpoint_committed: payload("context_checkpoint_committed", {
    checkpoint: Checkpoint,
    boundaries: CheckpointBoundaries,
    budgets: CheckpointBudgets,
  }),
  /** Files that were read before a checkpoint, as they are now; oldest reading first. */
  context_rehydrated: payload("context_rehydrated", {
    files: z.array(RehydratedFile).min(1).max(5),
  }),
  /** A person's answer is remembered for the same operation in every session of the tree. */
  tree_approval_grant_committed: payload("tree_approval_grant_committed", {
    grant: TreeApprovalGrant,
  }),
} as const;

export type EventType = keyof typeof EVENT_PAYLOADS;
export type EventPayload = { [T in EventType]: z.infer<(typeof EVENT_PAYLOADS)[T]> }[EventType];
export type EventPayloadOf<T extends EventType> = Extract<EventPayload, { type: T }>;

/** Coalesced, published without waiting for a sync (S 2.4). Every other type is commit class. */
export const STREAM_EVENTS: ReadonlySet<string> = new Set<EventType>([
  "text_delta",
  "reasoning_delta",
  "tool_call_progress",
]);

/** May be written outside a run; `session_created` and overlays must be (S 2.2). */
export const RUNLESS_EVENTS: Readonly<Record<"must" | "may", ReadonlySet<string>>> = {
  must: new Set<EventType>([
    "session_created",
    "session_permission_overlay_set",
    "session_reverted",
    "plugin_diagnostic",
    "plugin_event_added",
  ]),
  may: new Set<EventType>([
    "user_input_admitted",
    "user_input_recalled",
    "session_title_committed",
    "internal_agent_started",
    "internal_agent_usage_recorded",
    "internal_agent_fallback",
    "internal_agent_completed",
    "internal_agent_failed",
    "internal_agent_cancelled",
    "internal_agent_interrupted",
    "context_checkpoint_committed",
    "context_rehydrated",
  ]),
};

/** One line of `events.jsonl` (S 2.1), with the payload still to be judged by its type. */
export const EventEnvelope = z.strictObject({
  engine_version: boundedText(1, 64).optional(),
  origin: boundedText(1, 128).optional(),
  session_id: SessionId,
  run_id: RunId.nullable(),
  seq: Seq,
  timestamp: Timestamp,
  payload: z.looseObject({ type: z.string() }),
});
export type EventEnvelope = z.infer<typeof EventEnvelope>;

/** An event as it stands in the log. */
export interface StoredEvent<P extends EventPayload = EventPayload> {
  readonly session_id: SessionId;
  readonly run_id: RunId | null;
  readonly seq: number;
  readonly timestamp: string;
  readonly payload: P;
}

/** Why a line of a log was left out of the fold (S 2.5). */
export const SkippedEvent = z.object({
  seq: Seq.optional(),
  line: z.int().min(1).optional(),
  reason: boundedText(1, 1024),
});
export type SkippedEvent = z.infer<typeof SkippedEvent>;
