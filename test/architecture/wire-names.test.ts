import * as protocol from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";

const {
  CLIENT_PROTOCOL_VERSION,
  ERROR_NUMBERS,
  EVENT_PAYLOADS,
  HOOKS,
  MAX_FRAME_BYTES,
  PLUGIN_PROTOCOL_VERSION,
  PROGRESS_WINDOW_BYTES,
  RUNLESS_EVENTS,
  STREAM_EVENTS,
} = protocol;

describe("what others have written down", () => {
  test("protocol versions and wire limits", () => {
    expect({
      PLUGIN_PROTOCOL_VERSION,
      CLIENT_PROTOCOL_VERSION,
      MAX_FRAME_BYTES,
      PROGRESS_WINDOW_BYTES,
    }).toEqual({
      PLUGIN_PROTOCOL_VERSION: "0.1.0",
      CLIENT_PROTOCOL_VERSION: 20,
      MAX_FRAME_BYTES: 4_194_304,
      PROGRESS_WINDOW_BYTES: 1_048_576,
    });
  });

  test("[E-015] requests and notifications have their pinned names", () => {
    expect(namesOf("request")).toEqual([
      "agent.usage",
      "approval.list",
      "approval.respond",
      "events.subscribe",
      "handshake",
      "host/artifacts/read",
      "host/artifacts/write",
      "host/config/get",
      "host/delegation/cancel",
      "host/delegation/result",
      "host/delegation/start",
      "host/delegation/targets",
      "host/goals/get",
      "host/goals/update",
      "host/media/deliver",
      "host/media/sniff",
      "host/messages/send",
      "host/permission/ask",
      "host/session/info",
      "host/skills/commit",
      "host/skills/get",
      "host/skills/list",
      "host/tools/list_changed",
      "plugin/emit",
      "plugin/initialize",
      "plugin/ping",
      "plugin/service/call",
      "plugin/tools/call",
      "plugin/tools/prepare",
      "plugin/tools/resolve",
      "plugin/tools/revalidate",
      "plugin/tools/stdin",
      "plugins.reload",
      "plugins.restart",
      "plugins.status",
      "process/attach",
      "process/detach",
      "run.cancel",
      "run.recall_steer",
      "run.start",
      "run.steer",
      "run.tool_stdin",
      "runtime.snapshot.get",
      "session.children",
      "session.compact",
      "session.create",
      "session.fork",
      "session.get",
      "session.list",
      "session.permission.clear",
      "session.permission.explain",
      "session.permission.get",
      "session.permission.set",
      "session.remove",
      "session.rename",
      "session.resume",
      "session.revert",
      "session.set_permission_mode",
      "session.tree",
      "session.tree_usage",
      "session.usage",
      "usage.global",
    ]);
    expect(namesOf("notification")).toEqual([
      "events.plugin",
      "events.subscription",
      "events.tool_output_delta",
      "events.tool_output_gap",
      "events.tool_output_snapshot",
      "host/log",
      "host/tools/progress",
      "plugin/bus_event",
      "plugin/emit",
      "plugin/emit_result",
      "plugin/event",
      "plugin/shutdown",
      "plugin/tools/discard",
      "plugin/tools/progress_ack",
      "runtime.changed",
    ]);
  });

  test("event types have their pinned names, in the order of their introduction", () => {
    expect(Object.keys(EVENT_PAYLOADS)).toEqual([
      "session_created",
      "session_permission_overlay_set",
      "session_title_committed",
      "agent_md_loaded",
      "user_input_admitted",
      "user_input_submitted",
      "user_input_applied",
      "user_input_recalled",
      "run_started",
      "run_completed",
      "run_failed",
      "run_cancelled",
      "run_interrupted",
      "model_attempt_started",
      "model_request_prepared",
      "model_replay_evaluated",
      "text_delta",
      "reasoning_delta",
      "attempt_abandoned",
      "model_turn_committed",
      "model_usage_recorded",
      "model_fallback",
      "tool_call_started",
      "tool_call_progress",
      "tool_stdin_submitted",
      "tool_call_terminated",
      "approval_requested",
      "approval_doom_loop_detected",
      "approval_evaluated",
      "approval_escalated",
      "approval_user_decision_recorded",
      "approval_finalized",
      "approval_cancelled",
      "user_input_transformed",
      "message_injected",
      "plugin_diagnostic",
      "plugin_event_added",
      "session_reverted",
      "internal_agent_started",
      "internal_agent_usage_recorded",
      "internal_agent_fallback",
      "internal_agent_completed",
      "internal_agent_failed",
      "internal_agent_cancelled",
      "internal_agent_interrupted",
      "context_checkpoint_committed",
      "context_rehydrated",
      "tree_approval_grant_committed",
    ]);
  });

  test("hooks have their pinned names, in the order of the protocol", () => {
    expect(Object.values(HOOKS).map(({ name }) => name)).toEqual([
      "plugin/intercept/user_before_input",
      "plugin/intercept/model_before_select",
      "plugin/intercept/agent_before_start",
      "plugin/intercept/model_before_request",
      "plugin/intercept/provider_before_headers",
      "plugin/intercept/provider_before_request",
      "plugin/intercept/provider_after_response",
      "plugin/intercept/message_end",
      "plugin/intercept/tool_before_call",
      "plugin/intercept/tool_after_result",
      "plugin/intercept/session_before_compact",
      "plugin/intercept/session_before_fork",
      "plugin/intercept/session_before_revert",
    ]);
    expect(Object.keys(HOOKS)).toEqual(protocol.HookName.options);
  });

  test("an event payload carries the name it is listed under", () => {
    for (const [type, payload] of Object.entries(EVENT_PAYLOADS)) {
      expect([...payload.shape.type.values]).toEqual([type]);
    }
  });

  test("stream events and events outside a run are the pinned ones", () => {
    expect([...STREAM_EVENTS]).toEqual(["text_delta", "reasoning_delta", "tool_call_progress"]);
    expect([...RUNLESS_EVENTS.must]).toEqual([
      "session_created",
      "session_permission_overlay_set",
      "session_reverted",
      "plugin_diagnostic",
      "plugin_event_added",
    ]);
    expect([...RUNLESS_EVENTS.may]).toEqual([
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
    ]);
  });

  test("error codes keep their numbers", () => {
    expect(ERROR_NUMBERS).toEqual({
      method_not_found: -32601,
      invalid_params: -32602,
      internal: -32603,
      cancelled: -32800,
      not_initialized: -31001,
      not_root_session: -32602,
      version_mismatch: -31002,
      not_granted: -31003,
      context_invalid: -31004,
      limit_exceeded: -31005,
      busy: -31006,
      shutting_down: -31007,
      protocol_violation: -31008,
      invalid_arguments: -31010,
      prepare_failed: -31011,
      operation_changed: -31012,
      prepared_capability_lost: -31012,
      resource_limit: -31013,
      execution_failed: -31014,
      timeout: -31015,
      plugin_unavailable: -31016,
      plugin_crashed: -31016,
      unsupported_platform: -31017,
      unsupported_security: -31017,
      permission_denied: -31018,
      progress_limit: -31019,
      artifact_missing: -31020,
      artifact_corrupt: -31020,
      artifact_uri: -31020,
      media_type: -31030,
      media_model: -31030,
      media_family: -31030,
      media_size: -31030,
      media_count: -31030,
      manifest_mismatch: -32000,
      integrity_mismatch: -32000,
      invalid_declaration: -32000,
      handshake_required: -32001,
      no_runnable_model: -32020,
      tree_session_not_found: -32030,
      corrupt_delegation: -32031,
      idempotency_conflict: -32602,
      invalid_sequence: -32602,
      invalid_title: -32602,
      approval_not_found: -32602,
      approval_not_pending: -32602,
      approval_revision_conflict: -32602,
      decision_not_allowed: -32602,
      operation_fingerprint_mismatch: -32602,
      session_not_found: -32602,
      session_missing: -32000,
      session_running: -32000,
      session_foreign: -32000,
      run_missing: -32000,
      ineligible_agent: -32000,
      disabled_agent: -32000,
      input_handled: -32000,
      model_selection_blocked: -32000,
      operation_blocked: -32000,
      stdin_unavailable: -32000,
      permission: -32000,
      plugin_missing: -32000,
      storage_failed: -32000,
      engine: -32000,
    });
  });
});

function namesOf(kind: "request" | "notification"): string[] {
  const values: readonly unknown[] = Object.values(protocol);
  return values
    .flatMap((value) => (isDeclaration(value) && value.kind === kind ? [value.name] : []))
    .sort();
}

function isDeclaration(value: unknown): value is { readonly kind: string; readonly name: string } {
  return typeof value === "object" && value !== null && "kind" in value && "params" in value;
}
