import type { ModelErrorKind } from "@cookie-agent/sdk/protocol";
import type { VendorReport } from "./vendor-report.ts";

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

/** The kind of a failure that a provider reports: by its status where that is plain, else by its words (C-184). */
export function judgeFailure(report: VendorReport, exchangeStatus: number | null): ModelErrorKind {
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

/** Whether the failure is the provider's own, so that the same request may succeed later. */
export function isServerSide(report: VendorReport, exchangeStatus: number | null): boolean {
  const status = report.status ?? exchangeStatus ?? 0;
  return status >= 500 || status === 409 || /server|internal|api_error/.test(report.words);
}
