import type { ModelErrorSummary } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  classifyFailure,
  mayRetry,
  retryDelayMs,
} from "../../../../kernel/src/model/retry-policy.ts";

function failure(changes: Partial<ModelErrorSummary>): ModelErrorSummary {
  return {
    kind: "unknown",
    message: "no",
    retryable: false,
    stage: "unknown",
    http_status: null,
    bytes_received: null,
    vendor_code: null,
    request_id: null,
    retry_after_ms: null,
    ...changes,
  };
}

const policy = { standardRetries: 3, overloadRetries: 5, backoffCeilingMs: 60_000 };

describe("classes", () => {
  test.for([
    ...(["abort", "native_context", "context_length"] as const).map(
      (kind) => [kind, false, null, "fail_run"] as const,
    ),
    ...(
      [
        "auth",
        "permission_denied",
        "invalid_request",
        "model_not_found",
        "quota",
        "unsupported",
        "content_filter",
        "invalid_tool_input",
        "replay",
      ] as const
    ).map((kind) => [kind, false, null, "advance"] as const),
    ...(["transport", "timeout", "rate_limited", "unexpected_eof"] as const).map(
      (kind) => [kind, true, null, "retry_standard"] as const,
    ),
    ...(["invalid_response", "provider", "unknown"] as const).flatMap((kind) => [
      [kind, true, null, "retry_standard"] as const,
      [kind, false, null, "advance"] as const,
    ]),
    ["overload", false, null, "retry_overload"] as const,
    ["rate_limited", true, 429, "retry_overload"] as const,
    ["provider", true, 503, "retry_overload"] as const,
    ["provider", true, 500, "retry_standard"] as const,
    ["quota", false, 429, "advance"] as const,
  ])("[S-130] %s, retryable %s, status %s: %s", ([kind, retryable, http_status, expected]) => {
    expect(classifyFailure(failure({ kind, retryable, http_status }))).toBe(expected);
  });
});

describe("budgets", () => {
  test.for([
    ["retry_standard", 2, true],
    ["retry_standard", 3, false],
    ["retry_overload", 4, true],
    ["retry_overload", 5, false],
    ["advance", 0, false],
    ["fail_run", 0, false],
  ] as const)("[S-131] %s after %i retries: %s", ([kind, used, expected]) => {
    expect(mayRetry(policy, kind, used)).toBe(expected);
  });

  test("[S-131] a negative budget has no end, zero allows none", () => {
    const odd = { ...policy, standardRetries: -1, overloadRetries: 0 };
    expect(mayRetry(odd, "retry_standard", 1e9)).toBe(true);
    expect(mayRetry(odd, "retry_overload", 0)).toBe(false);
  });
});

describe("delays", () => {
  test.for([
    [0, 0, 750],
    [0, 0.5, 1000],
    [1, 0.5, 2000],
    [5, 0.5, 32_000],
    [6, 0.5, 60_000],
    [6, 0, 45_000],
    [2000, 0.999, 60_000],
  ] as const)("[S-132] retry %i with jitter %d waits %i ms", ([retry, jitter, expected]) => {
    expect(retryDelayMs(policy, retry, null, jitter)).toBe(expected);
  });

  test("[S-132] a longer Retry-After wins over the ceiling, a shorter one does not shorten", () => {
    expect(retryDelayMs(policy, 0, 3_600_000, 0.5)).toBe(3_600_000);
    expect(retryDelayMs(policy, 3, 10, 0.5)).toBe(8000);
  });

  test("[S-132] a delay stays within ceiling and the longest timer, whatever comes in", () => {
    fc.assert(
      fc.property(
        fc.nat(5000),
        fc.option(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), { nil: null }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 1, max: 1e9 }),
        (retry, retryAfter, jitter, backoffCeilingMs) => {
          const delay = retryDelayMs({ ...policy, backoffCeilingMs }, retry, retryAfter, jitter);
          expect(delay).toBeGreaterThanOrEqual(1);
          expect(delay).toBeLessThanOrEqual(2 ** 31 - 1);
          if (retryAfter === null) expect(delay).toBeLessThanOrEqual(backoffCeilingMs);
        },
      ),
    );
  });
});
