/**
 * Every code with its number on the wire (E-171, D-112). The string is normative, the number is for libraries.
 * `send_message:*` codes come with messaging.
 */
export const ERROR_NUMBERS = {
  /** No such method; answer it to every request that you do not know. */
  method_not_found: -32601,
  /** The params do not match the schema of the method. */
  invalid_params: -32602,
  /** A fault of the answering side; says nothing of its inside. */
  internal: -32603,
  /** Answered after `$/cancelRequest` (E-105). */
  cancelled: -32800,
  /** Something else came before `plugin/initialize` was answered (E-022). */
  not_initialized: -31001,
  /** Both sides speak no common version of the protocol; `expected`, `found` (E-021). */
  version_mismatch: -31002,
  /** The plugin has no right to this service; `capability` (E-118). */
  not_granted: -31003,
  /** The context is unknown, used up, expired or another plugin's (E-117). */
  context_invalid: -31004,
  /** A bound of the protocol was passed; `limit`. */
  limit_exceeded: -31005,
  /** Too much is waiting already; ask again later. */
  busy: -31006,
  /** The other side is about to leave. */
  shutting_down: -31007,
  /** An answer or a message that the protocol does not allow at this point. */
  protocol_violation: -31008,
  /** The schema or the tool refuses the arguments; the model may correct them. */
  invalid_arguments: -31010,
  /** The preparation of a call failed. */
  prepare_failed: -31011,
  /** What was prepared or approved no longer is as it was; nothing was done (E-086, E-091). */
  operation_changed: -31012,
  /** A prepared token was used before, or was lost with its process (E-060). */
  prepared_capability_lost: -31012,
  /** Too large to send, to keep or to give to a model (E-002, E-104). */
  resource_limit: -31013,
  /** The tool could not do its work; the message says why. */
  execution_failed: -31014,
  /** No answer within the time that the call had. */
  timeout: -31015,
  /** No process of the plugin could be had. */
  plugin_unavailable: -31016,
  /** The plugin's process ended during the call. */
  plugin_crashed: -31016,
  /** Cannot be done on this operating system. */
  unsupported_platform: -31017,
  /** Cannot be done safely on this machine. */
  unsupported_security: -31017,
  /** A rule or a person refused the call; the message is a JSON object that says who and why. */
  permission_denied: -31018,
  /** A delta of output beyond the limits, or for a stream that is not declared (E-102). */
  progress_limit: -31019,
  /** No such artifact. */
  artifact_missing: -31020,
  /** The bytes of an artifact are not those that were stored. */
  artifact_corrupt: -31020,
  /** Not the address of an artifact. */
  artifact_uri: -31020,
  /** Media of a kind that cannot be attached, or not what it says to be. */
  media_type: -31030,
  /** The selected model takes no such media. */
  media_model: -31030,
  /** The provider's wire cannot carry such media. */
  media_family: -31030,
  /** Media beyond the size that may be attached. */
  media_size: -31030,
  /** More media than may be attached at once. */
  media_count: -31030,
  // state reasons of a plugin
  /** The plugin introduced itself with more than its manifest declares, or with something else (E-035). */
  manifest_mismatch: -32000,
  /** A file is not the one whose digest the configuration or the manifest gives (E-113). */
  integrity_mismatch: -32000,
  /** A manifest or tool declaration is wrong; names the member (E-034). */
  invalid_declaration: -32000,
  // client protocol
  /** A client asked something before `handshake`. */
  handshake_required: -32001,
  /** No model that could run is configured. */
  no_runnable_model: -32020,
  /** There is no such session whose tree could be summed. */
  tree_session_not_found: -32030,
  /** A session of the tree names a parent that it cannot have. */
  corrupt_delegation: -32031,
  /** The same key came with another request. */
  idempotency_conflict: -32602,
  /** No usable session title. */
  invalid_title: -32602,
  /** No such approval. */
  approval_not_found: -32602,
  /** The approval is decided already. */
  approval_not_pending: -32602,
  /** The approval changed since the client saw it. */
  approval_revision_conflict: -32602,
  /** This approval does not offer that decision. */
  decision_not_allowed: -32602,
  /** The decision is about another operation than the approval. */
  operation_fingerprint_mismatch: -32602,
  /** No such session. */
  session_not_found: -32602,
  /** The session was delegated; only the root of its tree can be asked for this. */
  not_root_session: -32602,
  /** No such session is here, or none is open. */
  session_missing: -32000,
  /** The session has no event of that number to go back to. */
  invalid_sequence: -32602,
  /** The session has a run under way. */
  session_running: -32000,
  /** Another process owns the session. */
  session_foreign: -32000,
  /** No such run is under way. */
  run_missing: -32000,
  /** This agent does not exist, or may not run here. */
  ineligible_agent: -32000,
  /** The agent is disabled. */
  disabled_agent: -32000,
  /** A plugin took the input for itself; no run starts (E-160). */
  input_handled: -32000,
  /** A plugin refused the model (E-160). */
  model_selection_blocked: -32000,
  /** A plugin refused the operation, or could not be asked and is required (E-204). */
  operation_blocked: -32000,
  /** The call takes no input, or no more. */
  stdin_unavailable: -32000,
  /** Stopped because of a permission that nobody could give. */
  permission: -32000,
  /** The plugin that a request needs is not there. */
  plugin_missing: -32000,
  /** The session's log could not be written; the run stops. */
  storage_failed: -32000,
  /** A fault of the kernel. */
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
