import { expect, test } from "vitest";
import { formatCost, formatCount, formatShare } from "../../../../cli/src/usage/format-amount.ts";
import { renderUsageTable } from "../../../../cli/src/usage/usage-table.ts";
import { reportOf } from "./report-fixture.ts";

test("one line for each day and model; sums; an unknown price is never a number", () => {
  const report = reportOf([
    { day: "2026-03-01", model: "custom.a/big", input: 120_000, cost: 1.5 },
    { day: "2026-03-01", model: "custom.b/own", input: 9999 },
    { day: "2026-03-02", model: "custom.a/big", input: 1, cost: 0.004 },
  ]);
  expect(`\n${renderUsageTable(report)}\n`).toBe(`
DAY         MODEL         REQUESTS  INPUT  OUTPUT  CACHED     COST
2026-03-01  custom.a/big         1   120k       0       -    $1.50
            custom.b/own         1   9999       0       -  unknown
2026-03-02  custom.a/big         1      1       0       -  $0.0040
all days    custom.a/big         2   120k       0       -    $1.50
            custom.b/own         1   9999       0       -  unknown
total                            3   130k       0       -  unknown
`);
});

test("a model's name cannot control the terminal", () => {
  const report = reportOf([{ day: "2026-03-01", model: "custom.a/\u202Eevil" }]);
  expect(renderUsageTable(report)).not.toMatch(/[\u202E\u001B]/);
});

test.for([
  [0, "0"],
  [9999, "9999"],
  [10_000, "10.0k"],
  [99_949, "99.9k"],
  [123_456, "123k"],
  [1_000_000, "1.0M"],
  [12_345_678, "12.3M"],
  [2_000_000_000, "2.0G"],
  [Number.MAX_SAFE_INTEGER, "9007199G"],
] as const)("%s tokens are %s", ([count, text]) => {
  expect(formatCount(count)).toBe(text);
});

test.for([
  [null, "unknown"],
  [0, "$0.00"],
  [1234.5, "$1234.50"],
  [0.1, "$0.10"],
  [0.0123, "$0.012"],
  [0.000000000001, "$0.000000000001"],
] as const)("%s dollars are %s", ([usd, text]) => {
  expect(formatCost(usd)).toBe(text);
});

test("a share that is not known is no number", () => {
  expect([null, 0, 0.666, 1].map(formatShare)).toEqual(["-", "0%", "67%", "100%"]);
});
