/**
 * Every code with its number on the wire (E-171, D-112). The string is normative, the number is for libraries.
 * `send_message:*` codes come with messaging.
 */
export const ERROR_NUMBERS = {
  method_not_found: -32601,
  invalid_params: -32602,
  internal: -32603,
  cancelled: -32800,
  not_initialized: -31001,
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
  // state reasons of a plugin
  manifest_mismatch: -32000,
  integrity_mismatch: -32000,
  invalid_declaration: -32000,
  // client protocol
  handshake_required: -32001,
  no_runnable_model: -32020,
  idempotency_conflict: -32602,
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
} as const;

export type ErrorCode = keyof typeof ERROR_NUMBERS;

/** True for a code this build knows; plugins may add codes of their own (number -32000). */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_NUMBERS, code);
}

export interface CookieErrorOptions {
  /** Facts beside the code, merged into the wire `data`. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** The one error class: a stable `code`, a message for the one who must act, facts in `data`. */
export class CookieError extends Error {
  override readonly name: string = "CookieError";
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode | (string & {}), message: string, options: CookieErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data ?? {};
  }
}

/** Tells our errors apart by code; works across two copies of this package. */
export function isCookieError(error: unknown, code?: string): error is CookieError {
  return (
    error instanceof Error &&
    "code" in error &&
    typeof error.code === "string" &&
    "data" in error &&
    (code === undefined || error.code === code)
  );
}
