import type { ModelErrorSummary } from "@cookie-agent/sdk/protocol";
import type { ModelRetryConfig } from "../config/config.ts";

/** The longest wait a timer can measure, 24.8 days; a longer `Retry-After` saturates here. */
const MAX_WAIT_MS = 2 ** 31 - 1;

/** What a failed attempt leads to (S 5.4). */
export type FailureClass = "fail_run" | "advance" | "retry_standard" | "retry_overload";

/** Sorts a model error into its class; the table of S 5.4 (S-130). */
export function classifyFailure(error: ModelErrorSummary): FailureClass {
  if (error.kind === "overload" || (error.retryable && isOverloadStatus(error.http_status))) {
    return "retry_overload";
  }
  switch (error.kind) {
    case "abort":
    case "context_length":
    case "native_context":
      return "fail_run";
    case "auth":
    case "permission_denied":
    case "invalid_request":
    case "model_not_found":
    case "quota":
    case "unsupported":
    case "content_filter":
    case "invalid_tool_input":
    case "replay":
      return "advance";
    case "transport":
    case "timeout":
    case "rate_limited":
    case "unexpected_eof":
      return "retry_standard";
    case "invalid_response":
    case "provider":
    case "unknown":
      return error.retryable ? "retry_standard" : "advance";
  }
}

/** True while the budget of the error's class covers one more retry on this chain entry (S-131, S-134). */
export function mayRetry(
  policy: ModelRetryConfig,
  failure: FailureClass,
  retriesUsed: number,
): boolean {
  if (failure !== "retry_standard" && failure !== "retry_overload") return false;
  const budget = failure === "retry_overload" ? policy.overloadRetries : policy.standardRetries;
  return budget < 0 || retriesUsed < budget;
}

/**
 * Wait before retry number `retry` (from 0): 1 s × 2^retry with 25 % jitter, clamped to the ceiling; a longer
 * `Retry-After` wins, with no cap but that of timers (S-132).
 * @param jitter Uniform in [0, 1).
 */
export function retryDelayMs(
  policy: ModelRetryConfig,
  retry: number,
  retryAfterMs: number | null,
  jitter: number,
): number {
  const ceiling = policy.backoffCeilingMs;
  const base = Math.min(1000 * 2 ** Math.min(retry, 52), ceiling);
  const delay = Math.min(Math.max(Math.round(base * (0.75 + 0.5 * jitter)), 1), ceiling);
  return Math.min(Math.max(delay, retryAfterMs ?? 0), MAX_WAIT_MS);
}

function isOverloadStatus(status: number | null): boolean {
  return status === 429 || status === 503;
}
