import type { JsonObject, ModelErrorKind } from "@cookie-agent/sdk/protocol";
import type { HttpExchange } from "./http-exchange.ts";
import { isJsonObject } from "./json-object.ts";
import { ModelError, modelError } from "./model-error.ts";

/** What surrounds a failure: who was asked, and what the connection saw. */
export interface FailureContext {
  readonly provider: string;
  readonly exchange: HttpExchange;
  /** The caller's own signal. */
  readonly signal: AbortSignal;
  /** Credentials that a provider may echo in its message. */
  readonly secrets: readonly string[];
}

/** What a provider said about its own failure, wherever it said it. */
interface VendorReport {
  readonly message: string;
  readonly code: string | null;
  readonly words: string;
  readonly status: number | null;
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
  const kind = judge(report, exchange.status);
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
  if (code !== null || /fetch failed|terminated|cannot connect/i.test(messageOf(error))) {
    const timedOut = code !== null && /TIMEOUT|ETIMEDOUT/.test(code);
    const connected = context.exchange.status !== null;
    return modelError({
      kind: timedOut ? "timeout" : "transport",
      stage: connected ? "stream_read" : "connect",
      message: connected
        ? `the connection to ${context.provider} broke in the middle of the response${detail(code)}`
        : `cannot reach ${context.provider}${detail(code)}; check the endpoint and the network`,
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
const DECODE_ERROR_NAMES: ReadonlySet<string> = new Set([
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
]);
const UNSUPPORTED_NAMES: ReadonlySet<string> = new Set([
  "AI_UnsupportedFunctionalityError",
  "AI_InvalidPromptError",
  "AI_InvalidArgumentError",
]);

function detail(code: string | null): string {
  return code === null ? "" : ` (${code})`;
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
    request_id: requestId === null || requestId === "" ? null : requestId.slice(0, 512),
    retry_after_ms: parseRetryAfter((name) => exchange.responseHeader(name)),
  };
}

const CONTEXT_WORDS =
  /context[_ ](?:length|window|limit)|maximum context|prompt is too long|input is too long|too many (?:input )?tokens|exceeds? the (?:model's )?(?:maximum )?(?:context|token)/;
const QUOTA_WORDS =
  /insufficient_quota|quota|billing|credit balance|insufficient (?:credit|balance)/;

/** Statuses that mean the same everywhere; the others are told apart by the provider's words. */
const KIND_OF_STATUS: ReadonlyMap<number, ModelErrorKind> = new Map<number, ModelErrorKind>([
  [401, "auth"],
  [402, "quota"],
  [403, "permission_denied"],
  [404, "model_not_found"],
  [408, "timeout"],
  [413, "context_length"],
  [429, "rate_limited"],
  [503, "overload"],
  [529, "overload"],
]);

const KIND_OF_WORDS: readonly (readonly [RegExp, ModelErrorKind])[] = [
  [/overload/, "overload"],
  [/rate.?limit|too many requests/, "rate_limited"],
  [/authentication|invalid_api_key|unauthorized/, "auth"],
  [/permission|forbidden/, "permission_denied"],
  [/model_not_found|not_found_error/, "model_not_found"],
  [/content_filter|content_policy|content policy/, "content_filter"],
  [/timeout|timed out/, "timeout"],
  [/invalid_request|bad_request|invalid_prompt|unsupported_value/, "invalid_request"],
];

function judge(report: VendorReport, exchangeStatus: number | null): ModelErrorKind {
  // A status inside a 200 is the provider's own; the transport's one says nothing then.
  const status = exchangeStatus !== null && exchangeStatus >= 300 ? exchangeStatus : report.status;
  const words = `${report.words} ${report.message.toLowerCase()}`;
  if (status === 429 && QUOTA_WORDS.test(report.words)) return "quota";
  const known = status === null ? undefined : KIND_OF_STATUS.get(status);
  if (known !== undefined) return known;
  if (CONTEXT_WORDS.test(words)) return "context_length";
  if (QUOTA_WORDS.test(words)) return "quota";
  const spoken = KIND_OF_WORDS.find(([pattern]) => pattern.test(report.words));
  if (spoken !== undefined) return spoken[1];
  if (status !== null && status >= 300 && status < 400) return "invalid_response";
  if (status !== null && status >= 400 && status < 500 && status !== 409) return "invalid_request";
  return "provider";
}

function isServerSide(report: VendorReport, exchangeStatus: number | null): boolean {
  const status = report.status ?? exchangeStatus ?? 0;
  return status >= 500 || status === 409 || /server|internal|api_error/.test(report.words);
}

interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly data?: unknown;
  readonly responseBody?: unknown;
  readonly cause?: unknown;
}

/** By name, not by class: the provider packages stay unloaded until one of them is used. */
function readVendorReport(error: unknown): VendorReport | null {
  if (!(error instanceof Error) || error.name !== "AI_APICallError") return null;
  const call: ErrorLike = error;
  if (typeof call.statusCode !== "number" || networkCode(error) !== null) return null;
  if (decodeErrorName(error) !== null) return null;
  if (call.statusCode < 300) return null;
  const body =
    parseReport(call.data) ??
    parseReport(typeof call.responseBody === "string" ? parseJson(call.responseBody) : undefined);
  return {
    message: body?.message ?? (error.message === "" ? "no details given" : error.message),
    code: body?.code ?? null,
    words: body?.words ?? "",
    status: call.statusCode,
  };
}

/** A package may report its own failure to read the first event as an answer of the provider. */
function decodeErrorName(error: unknown): string | null {
  const { responseBody }: ErrorLike = error instanceof Error ? error : {};
  const body = typeof responseBody === "string" ? asRecord(parseJson(responseBody)) : null;
  const name = body?.name;
  return typeof name === "string" && DECODE_ERROR_NAMES.has(name) ? name : null;
}

/** `{error: {message, type, code}}`, `{type, message}`, `{response: {error}}`, or a message alone. */
function parseReport(value: unknown): VendorReport | null {
  const outer = asRecord(value);
  if (outer === null) return null;
  const inner = asRecord(outer.error) ?? asRecord(asRecord(outer.response)?.error) ?? outer;
  const message =
    typeof inner.message === "string"
      ? inner.message
      : typeof outer.error === "string"
        ? outer.error
        : null;
  if (message === null) return null;
  const names = [inner.code, inner.type, outer.status].filter(
    (name): name is string => typeof name === "string",
  );
  const numbers = [inner.code, inner.status, inner.statusCode, outer.statusCode].map(Number);
  return {
    message,
    code: safeCode(names[0]),
    words: names.join(" ").toLowerCase(),
    status: numbers.find((n) => Number.isInteger(n) && n >= 400 && n <= 599) ?? null,
  };
}

function safeCode(text: string | undefined): string | null {
  const code = text?.toLowerCase() ?? "";
  return /^[a-z0-9][a-z0-9._-]{0,127}$/.test(code) ? code : null;
}

function networkCode(error: unknown): string | null {
  for (const each of causes(error)) {
    if (
      "code" in each &&
      typeof each.code === "string" &&
      /^(?:E(?!RR_)[A-Z_]+|UND_ERR_\w+|CERT_\w+|\w*_CERT\w*)$/.test(each.code)
    ) {
      return each.code;
    }
  }
  return null;
}

function findModelError(error: unknown): ModelError | null {
  for (const each of causes(error)) if (each instanceof ModelError) return each;
  return null;
}

function* causes(error: unknown): Generator<Error> {
  let current = error;
  for (let depth = 0; current instanceof Error && depth < 8; depth += 1) {
    yield current;
    current = current.cause;
  }
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function asRecord(value: unknown): JsonObject | null {
  return isJsonObject(value) ? value : null;
}
