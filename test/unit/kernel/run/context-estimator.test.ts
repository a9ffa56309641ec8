import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ContextEstimator } from "../../../../kernel/src/run/context-estimator.ts";
import { triggerTokens } from "../../../../kernel/src/run/context-limits.ts";

describe("an estimate", () => {
  test("[S-217] without any report is a quarter of the bytes, rounded up", () => {
    const estimator = new ContextEstimator();
    expect([0, 1, 4, 5].map((bytes) => estimator.project(bytes))).toEqual([0, 1, 1, 2]);
  });

  test("[S-217] is the last reported input plus new bytes at the same rate", () => {
    const estimator = new ContextEstimator();
    estimator.measured(1000, 500);
    expect(estimator.project(1000)).toBe(500);
    expect(estimator.project(1600)).toBe(800);
    estimator.measured(2000, 400);
    expect(estimator.project(3000)).toBe(600);
  });

  test("[S-217] counts from the estimated size after a compaction", () => {
    const estimator = new ContextEstimator();
    estimator.measured(1000, 500);
    estimator.compacted(200);
    expect(estimator.project(200)).toBe(100);
    expect(estimator.project(300)).toBe(150);
  });

  test.for([null, 0, 1, 31])(
    "[S-217] takes a report of %s tokens for 1,000 bytes as none",
    (tokens) => {
      const estimator = new ContextEstimator();
      estimator.measured(1000, tokens);
      expect(estimator.project(1000)).toBe(250);
    },
  );

  test("stays a number that can be recorded, whatever is reported", () => {
    const estimator = new ContextEstimator();
    estimator.measured(10, Number.MAX_SAFE_INTEGER);
    expect(Number.isSafeInteger(estimator.project(1_000_000))).toBe(true);
    expect(Number.isSafeInteger(estimator.tokensOf(1_000_000))).toBe(true);
  });

  test("[S-217] never falls when a request grows, and bytes for tokens never have more tokens", () => {
    const size = fc.integer({ min: 0, max: 10_000_000 });
    fc.assert(
      fc.property(
        size,
        size,
        size,
        fc.integer({ min: 1, max: 2_000_000 }),
        (a, b, base, tokens) => {
          const estimator = new ContextEstimator();
          estimator.measured(base, tokens);
          const [low, high] = [Math.min(a, b), Math.max(a, b)];
          expect(estimator.project(low)).toBeLessThanOrEqual(estimator.project(high));
          expect(estimator.tokensOf(estimator.bytesOf(tokens))).toBeLessThanOrEqual(tokens + 1);
        },
      ),
    );
  });
});

test.for([
  { trigger: { kind: "percent", percent: 70 }, limit: 1001, expected: 700 },
  { trigger: { kind: "percent", percent: 99 }, limit: 10, expected: 9 },
  { trigger: { kind: "buffer_tokens", bufferTokens: 300 }, limit: 1000, expected: 700 },
  { trigger: { kind: "buffer_tokens", bufferTokens: 1000 }, limit: 1000, expected: 0 },
  { trigger: { kind: "buffer_tokens", bufferTokens: 5000 }, limit: 1000, expected: 0 },
  { trigger: { kind: "percent", percent: 70 }, limit: null, expected: 0 },
] as const)("[S-215] the trigger of $limit tokens with $trigger is $expected", (row) => {
  expect(triggerTokens({ trigger: row.trigger }, row.limit)).toBe(row.expected);
});
