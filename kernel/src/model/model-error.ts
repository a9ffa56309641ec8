import {
  CookieError,
  type ModelErrorKind,
  type ModelErrorSummary,
} from "@cookie-agent/sdk/protocol";
import { safeText } from "../support/safe-text.ts";

const MAX_MESSAGE_BYTES = 4096;

/** A failed model attempt, normalized over providers; its summary holds no header and no credential (C-186). */
export class ModelError extends CookieError {
  readonly summary: ModelErrorSummary;

  constructor(summary: ModelErrorSummary) {
    super("model_error", summary.message, { data: { kind: summary.kind } });
    this.summary = summary;
  }
}

export type ModelErrorFacts = Pick<ModelErrorSummary, "kind" | "message" | "stage"> &
  Partial<ModelErrorSummary>;

/** Fills in what is not known and bounds the message. */
export function modelError(facts: ModelErrorFacts): ModelError {
  return new ModelError({
    retryable: isRetryableKind(facts.kind),
    http_status: null,
    bytes_received: null,
    vendor_code: null,
    request_id: null,
    retry_after_ms: null,
    ...facts,
    message: safeText(facts.message, MAX_MESSAGE_BYTES),
  });
}

const RETRYABLE: ReadonlySet<ModelErrorKind> = new Set<ModelErrorKind>([
  "transport",
  "timeout",
  "rate_limited",
  "overload",
  "unexpected_eof",
]);

function isRetryableKind(kind: ModelErrorKind): boolean {
  return RETRYABLE.has(kind);
}
