import { describe, expect, test } from "vitest";
import { groupByPeriod } from "../../../../cli/src/usage/group-by-period.ts";
import { lookOf, type TerminalLook } from "../../../../cli/src/usage/terminal-look.ts";
import { renderUsageChart } from "../../../../cli/src/usage/usage-chart.ts";
import { reportOf } from "./report-fixture.ts";

const PLAIN: TerminalLook = { columns: 40, colors: false, blocks: true };
const A = "custom.a/m";
const B = "custom.b/m";

describe("the chart", () => {
  const report = reportOf([
    { day: "2026-03-01", model: A, cost: 2 },
    { day: "2026-03-03", model: A, cost: 0.01 },
    { day: "2026-03-03", model: B, cost: 1 },
  ]);

  test("has a bar for each day, those without use too, in the width there is", () => {
    expect(`\n${renderUsageChart(report, PLAIN)}\n`).toBe(`
cost per day
2026-03-01  $2.00  █████████████████████
2026-03-02      -
2026-03-03  $1.01  ██████████▋
`);
    for (const columns of [40, 80, 200]) {
      const lines = renderUsageChart(report, { ...PLAIN, columns }).split("\n");
      expect(Math.max(...lines.map((line) => line.length))).toBe(columns);
    }
  });

  test("is plain ASCII where the locale has nothing else", () => {
    const text = renderUsageChart(report, { ...PLAIN, blocks: false });
    expect(text).toContain("2026-03-01  $2.00  #####################");
    expect(text).toMatch(/^[\n -~]*$/);
  });

  test("with colours gives each model its piece, and names them", () => {
    const text = renderUsageChart(report, { ...PLAIN, colors: true });
    expect(text).toContain("\u001B[33m█\u001B[39m custom.b/m");
    expect(text).toMatch(/2026-03-03 {2}\$1\.01 {2}.*\u001B\[33m█+/);
    const visible = text.replaceAll(/\u001B\[\d+m/g, "").split("\n");
    expect(visible[1]).toBe("2026-03-01  $2.00  █████████████████████");
    expect(Math.max(...visible.map((line) => line.length))).toBe(40);
  });

  test("is of tokens where a price is missing, and says so", () => {
    const unpriced = reportOf([
      { day: "2026-03-01", model: A, input: 2000, cost: 1 },
      { day: "2026-03-02", model: B, input: 1000 },
    ]);
    const text = renderUsageChart(unpriced, PLAIN);
    expect(text).toContain("tokens per day (not every price is known)");
    expect(text).not.toContain("$");
  });

  test("is left out when there is nothing to draw", () => {
    expect(renderUsageChart(reportOf([]), PLAIN)).toBe("");
    expect(renderUsageChart(reportOf([{ day: "2026-03-01", model: A, cost: 0 }]), PLAIN)).toBe("");
  });
});

describe("more days than fit", () => {
  const spread = (count: number, stepDays: number) =>
    reportOf(
      Array.from({ length: count }, (_, index) => ({
        day: new Date(Date.UTC(2025, 0, 1) + index * stepDays * 86_400_000)
          .toISOString()
          .slice(0, 10),
        model: A,
        cost: 1,
      })),
    ).days ?? [];

  test.for([
    [31, 1, "day", 31],
    [32, 1, "week", 5],
    [31, 7, "week", 31],
    [32, 7, "month", 8],
    [100, 31, "month", 31],
  ] as const)("%i uses every %i days: by %s", ([count, step, unit, periods]) => {
    const grouped = groupByPeriod(spread(count, step), 31);
    expect(grouped.unit).toBe(unit);
    expect(grouped.periods).toHaveLength(periods);
  });

  test("nothing is lost or doubled by it", () => {
    const days = spread(200, 1);
    const { periods } = groupByPeriod(days, 31);
    expect(periods.flatMap((period) => period.days)).toEqual(days.map(({ usage }) => usage));
    expect(periods[0]?.label).toBe("2024-12-30");
  });
});

test.for([
  [{ isTTY: true, columns: 120 }, { LANG: "en_US.UTF-8" }, [120, true, true]],
  [{ isTTY: true, columns: 120 }, { LANG: "en_US.UTF-8", NO_COLOR: "1" }, [120, false, true]],
  [{ isTTY: true, columns: 10 }, { LC_ALL: "C", LANG: "en_US.UTF-8" }, [40, true, false]],
  [{ isTTY: true, columns: 9999 }, { LC_CTYPE: "utf8", TERM: "dumb" }, [200, false, true]],
  [{}, {}, [80, false, false]],
] as const)("%j with %j shows %j", ([out, env, [columns, colors, blocks]]) => {
  expect(lookOf(out, env)).toEqual({ columns, colors, blocks });
});
