import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BenchReport, type Measure } from "./support/bench-report.ts";
import { HarnessBench, RUNS, type RunFigures, type Series } from "./support/drive-harnesses.ts";
import { FLOOD_BYTES, FLOOD_COMMAND } from "./support/scenario.ts";
import { growth, median, quantile } from "./support/statistics.ts";

const report = new BenchReport("command-line");
let bench: HarnessBench;

beforeAll(async () => {
  bench = await HarnessBench.open();
});
afterAll(async () => {
  report.finish();
  await bench.close();
});

const hello = () => bench.series({ scenario: "hello" });
const reads = () => bench.series({ scenario: "reads", count: 200, sampleMs: 100 });

describe("the command line beside its peers", () => {
  test("A: a cold start to the first model request, its work and its memory", async () => {
    const series = await hello();
    const floors = { floor: seconds(() => spawnSync(process.execPath, ["-e", "0"])) };
    check(
      "A",
      "first model request, s",
      each(series, (run) => run.firstRequestSeconds, floors),
      {
        bar: { times: 0.75, of: "pi" },
      },
    );
    check(
      "A",
      "hello, wall s",
      each(series, (run) => run.wallSeconds, floors),
    );
    check(
      "A",
      "hello, cpu s",
      each(series, (run) => run.cpuSeconds),
      {
        bar: { times: 0.75, of: "pi" },
      },
    );
    check(
      "A",
      "hello, process tree, MiB",
      each(series, (run) => run.peakTreeMib),
      {
        digits: 0,
        bar: { times: 0.9, of: "pi" },
      },
    );
  });

  test("B: two hundred read turns cost the same at the end as at the start", async () => {
    const series = await reads();
    check(
      "B",
      "read turn, median ms",
      each(series, (run) => median(run.gapsMs)),
      {
        digits: 1,
        bar: { times: 1, of: "pi" },
      },
    );
    check(
      "B",
      "read turn, p95 ms",
      each(series, (run) => quantile(run.gapsMs, 0.95)),
      {
        digits: 1,
        bar: { times: 1, of: "pi" },
      },
    );
    check(
      "B",
      "last quarter over first",
      each(series, (run) => growth(run.gapsMs)),
      { bar: 1.3 },
    );
    check(
      "B",
      "process tree after 200 turns, MiB",
      each(series, (run) => run.peakTreeMib),
      {
        digits: 0,
        bar: { times: 1.1, of: "codex" },
      },
    );
    check(
      "B",
      "200 turns, cpu s",
      each(series, (run) => run.cpuSeconds),
    );
  });

  test("B: a shell turn", async () => {
    const series = await bench.series({ scenario: "shells", count: 50, sampleMs: 100 });
    check(
      "B",
      "shell turn, median ms",
      each(series, (run) => median(run.gapsMs)),
      {
        digits: 1,
        bar: { times: 1, of: "pi" },
      },
    );
    check(
      "B",
      "50 shell turns, process tree, MiB",
      each(series, (run) => run.peakTreeMib),
      {
        digits: 0,
      },
    );
  });

  test("[T-021] C: eight sleeps of one second in one turn sleep together", async () => {
    const series = await bench.series({ scenario: "sleeps", count: 8, sampleMs: 50 });
    check("C", "eight sleeps, s", each(series, firstGapSeconds), { bar: 1.2 });
  });

  test("D: a hundred megabytes from one shell call are kept at flat memory", async () => {
    const series = await bench.series({ scenario: "flood", sampleMs: 50 });
    const floors = {
      floor: seconds(() =>
        spawnSync("/bin/bash", ["-c", `${FLOOD_COMMAND} | cat`], {
          stdio: ["ignore", "ignore", "ignore"],
        }),
      ),
    };
    check("D", "100 MB, turn s", each(series, firstGapSeconds, floors), {
      bar: { times: 1.8, of: "floor" },
    });
    const base = await hello();
    const overBase = overHello(series, base, (run) => run.peakProcessMib);
    check("D", "memory over own hello, largest process, MiB", overBase, { digits: 0, bar: 30 });
    check(
      "D",
      "kept on disk, MB",
      each(series, (run) => run.writtenBytes / 1e6),
      { digits: 0 },
    );
    for (const { writtenBytes } of series.get("cookie") ?? []) {
      expect.soft(writtenBytes).toBeGreaterThan(FLOOD_BYTES);
    }
  });

  test("E: two thousand text deltas", async () => {
    const series = await bench.series({ scenario: "deltas", count: 2000 });
    const base = await hello();
    const answering = (run: RunFigures) => (run.wallSeconds - run.firstRequestSeconds) * 1000;
    check("E", "2,000 deltas, added wall ms", overHello(series, base, answering), {
      digits: 0,
      bar: { times: 0.6, of: "pi" },
    });
    const work = overHello(series, base, (run) => run.cpuSeconds * 1000);
    check("E", "2,000 deltas, added cpu ms", work, { digits: 0, bar: { times: 0.6, of: "pi" } });
  });

  test("F: what a session of two hundred read turns writes, and how fast it resumes", async () => {
    const written = await reads();
    check(
      "F",
      "written, MiB",
      each(written, (run) => run.writtenBytes / 1024 ** 2),
      {
        bar: { times: 2, of: "pi" },
      },
    );
    const resumed = await bench.series({ scenario: "hello", resumed: "reads" });
    const base = await hello();
    check(
      "F",
      "resume, first model request, s",
      each(resumed, (run) => run.firstRequestSeconds),
    );
    const added = overHello(resumed, base, (run) => run.firstRequestSeconds * 1000);
    check("F", "resume over a new session, ms", added, { digits: 0, bar: { times: 1, of: "pi" } });
  });
});

type Values = Map<string, readonly number[]>;

/** Notes a measure and holds ours to its bar; one that misses does not hide the others. */
function check(
  row: string,
  what: string,
  values: Values,
  options: Pick<Measure, "digits" | "bar"> = {},
): void {
  const { ours, limit } = report.add({ row, what, values, ...options });
  if (limit !== undefined) expect.soft(ours, `${row}: ${what}`).toBeLessThanOrEqual(limit);
}

/** One value a run of every program, and the floors measured beside them. */
function each(
  series: Series,
  measure: (run: RunFigures) => number,
  floors: Record<string, readonly number[]> = {},
): Values {
  const programs = [...series].map(([name, runs]) => [name, runs.map(measure)] as const);
  return new Map<string, readonly number[]>([...programs, ...Object.entries(floors)]);
}

/** What every run adds to the median of the same program's hello. */
function overHello(series: Series, base: Series, measure: (run: RunFigures) => number): Values {
  return new Map(
    [...series].map(([name, runs]) => {
      const own = median((base.get(name) ?? []).map(measure));
      return [name, runs.map((run) => measure(run) - own)];
    }),
  );
}

function firstGapSeconds({ gapsMs: [gap = Number.NaN] }: RunFigures): number {
  return gap / 1000;
}

function seconds(work: () => void): number[] {
  return Array.from({ length: RUNS }, () => {
    const start = performance.now();
    work();
    return (performance.now() - start) / 1000;
  });
}
