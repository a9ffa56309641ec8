import { cutUtf8 } from "../support/safe-text.ts";
import { causesOf, networkCode } from "./error-causes.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { isServerSide, judgeFailure } from "./judge-failure.ts";
import { ModelError, modelError } from "./model-error.ts";
import {
  DECODE_ERROR_NAMES,
  decodeErrorName,
  parseJson,
  parseReport,
  readVendorReport,
  type VendorReport,
} from "./vendor-report.ts";

/** What surrounds a failure: who was asked, and what the connection saw. */
export interface FailureContext {
  readonly provider: string;
  readonly exchange: HttpExchange;
  /** The caller's own signal. */
  readonly signal: AbortSignal;
  /** Credentials that a provider may echo in its message. */
  readonly secrets: readonly string[];
}

/** Any failure of an attempt as the one error the run room judges (C-184, C-186). */
export function toModelError(error: unknown, context: FailureContext): ModelError {
  if (context.signal.aborted) {
    return modelError({
      kind: "abort",
      stage: "stream_read",
      message: "the request was cancelled",
    });
  }
  const own = context.exchange.failure ?? findModelError(error);
  if (own !== null) return withExchange(own, context);
  const reported = readVendorReport(error);
  if (reported !== null) return fromVendor(reported, context);
  return fromMachine(error, context);
}

/** An error event inside a stream that began with 200. */
export function streamEventError(event: unknown, context: FailureContext): ModelError {
  if (event instanceof Error) return toModelError(event, context);
  const report = parseReport(event) ?? {
    message: typeof event === "string" ? event : "the provider reported an error without text",
    code: null,
    words: typeof event === "string" ? event.toLowerCase() : "",
    status: null,
  };
  return fromVendor(report, context);
}

/** A 200 that is no event stream: an error object, or a page of something else. */
export function plainBodyError(text: string, context: FailureContext): ModelError {
  const report = parseReport(parseJson(text));
  if (report !== null) return fromVendor(report, context);
  return modelError({
    kind: "invalid_response",
    stage: "response_body",
    message: `${context.provider} answered with ${context.exchange.responseHeader("content-type") ?? "an untyped body"} where an event stream was expected; check the endpoint`,
    ...exchangeFacts(context),
  });
}

/** Seconds or an HTTP date, as milliseconds from now; `retry-after-ms` wins (B119). */
export function parseRetryAfter(header: (name: string) => string | null): number | null {
  const precise = Number(header("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(precise) && precise >= 0) return bounded(precise);
  const value = header("retry-after")?.trim();
  if (value === undefined || value === "") return null;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds < 0 ? null : bounded(seconds * 1000);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : bounded(Math.max(0, at - Date.now()));
}

function bounded(ms: number): number {
  return Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);
}

function fromVendor(report: VendorReport, context: FailureContext): ModelError {
  const { exchange, provider } = context;
  const kind = judgeFailure(report, exchange.status);
  const failedStatus = exchange.status !== null && exchange.status >= 300;
  const said = failedStatus ? `answered HTTP ${exchange.status}` : "reported an error";
  return modelError({
    kind,
    stage: failedStatus ? "response_headers" : "stream_event",
    message: redact(`${provider} ${said}: ${report.message}`, context.secrets),
    ...(kind === "provider" && { retryable: isServerSide(report, exchange.status) }),
    vendor_code: report.code,
    ...exchangeFacts(context),
  });
}

/** A failure with no words of the provider: the network, the parser, or a broken contract. */
function fromMachine(error: unknown, context: FailureContext): ModelError {
  const name = decodeErrorName(error) ?? (error instanceof Error ? error.name : "");
  const facts = exchangeFacts(context);
  if (STREAM_ENDED.test(messageOf(error))) {
    return modelError({
      kind: "unexpected_eof",
      stage: "stream_finalize",
      message: `${context.provider} ended the response before it was complete`,
      ...facts,
    });
  }
  if (DECODE_ERROR_NAMES.has(name)) {
    return modelError({
      kind: "invalid_response",
      stage: "stream_decode",
      message: `${context.provider} sent an event that is not understood (${name.replace("AI_", "")})`,
      retryable: true,
      ...facts,
    });
  }
  if (UNSUPPORTED_NAMES.has(name)) {
    return modelError({
      kind: name === "AI_UnsupportedFunctionalityError" ? "unsupported" : "invalid_request",
      stage: "request_encoding",
      message: redact(messageOf(error), context.secrets),
      ...facts,
    });
  }
  const code = networkCode(error);
  if (code !== null) {
    const connected = context.exchange.status !== null;
    return modelError({
      kind: code === "ETIMEDOUT" ? "timeout" : "transport",
      stage: connected ? "stream_read" : "connect",
      message: connected
        ? `the connection to ${context.provider} broke in the middle of the response (${code})`
        : describeUnreached(context.provider, code),
      ...facts,
    });
  }
  return modelError({
    kind: "unknown",
    stage: "unknown",
    message: redact(`${context.provider}: ${messageOf(error)}`, context.secrets),
    ...facts,
  });
}

const STREAM_ENDED = /stream ended without a finish reason/i;
const UNSUPPORTED_NAMES: ReadonlySet<string> = new Set([
  "AI_UnsupportedFunctionalityError",
  "AI_InvalidPromptError",
  "AI_InvalidArgumentError",
]);

function describeUnreached(provider: string, code: string): string {
  return code.startsWith("HPE_")
    ? `${provider} answers with what cannot be read as HTTP (${code}); check the endpoint`
    : `cannot reach ${provider} (${code}); check the endpoint and the network`;
}

function withExchange(error: ModelError, context: FailureContext): ModelError {
  return new ModelError({ ...error.summary, ...exchangeFacts(context) });
}

function exchangeFacts({ exchange }: FailureContext) {
  const requestId =
    exchange.responseHeader("x-request-id") ?? exchange.responseHeader("request-id");
  return {
    http_status: exchange.status,
    bytes_received: exchange.status === null ? null : exchange.bytesReceived,
    request_id: requestId === null || requestId === "" ? null : cutUtf8(requestId, 512),
    retry_after_ms: parseRetryAfter((name) => exchange.responseHeader(name)),
  };
}

function findModelError(error: unknown): ModelError | null {
  for (const each of causesOf(error)) if (each instanceof ModelError) return each;
  return null;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Providers echo keys; a short one would hide ordinary words. */
function redact(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= 4)
    .reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text);
}
