import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { median } from "./statistics.ts";

/** The most that ours may be: a number, or a multiple of another column. */
export type Bar = number | { readonly times: number; readonly of: string };

export interface Measure {
  /** The row of the performance table, such as `A`. */
  readonly row: string;
  readonly what: string;
  readonly digits?: number;
  /** One value a run, by column. */
  readonly values: ReadonlyMap<string, readonly number[]>;
  readonly bar?: Bar;
}

export interface Verdict {
  readonly ours: number;
  /** Absent when the column that the bar names was not measured. */
  readonly limit: number | undefined;
}

const OURS = "cookie";

/** Collects the measures of one file, prints them as one table and keeps them as JSON. */
export class BenchReport {
  readonly #name: string;
  readonly #measures: Measure[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  add(measure: Measure): Verdict {
    this.#measures.push(measure);
    return judge(measure);
  }

  finish(): void {
    const columns = [...new Set(this.#measures.flatMap(({ values }) => [...values.keys()]))];
    const lines = [
      ["row", "measure", ...columns, "bar", "ratio"],
      ["---", "---", ...columns.map(() => "---"), "---", "---"],
      ...this.#measures.map((measure) => [
        measure.row,
        measure.what,
        ...columns.map((column) => cell(measure, column)),
        ...verdictCells(measure),
      ]),
    ];
    process.stdout.write(`\n${lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("")}\n`);
    this.#keep();
  }

  #keep(): void {
    const directory = join(import.meta.dirname, "../../.results");
    mkdirSync(directory, { recursive: true });
    const measures = this.#measures.map((measure) => ({
      ...measure,
      values: Object.fromEntries(measure.values),
      ...judge(measure),
    }));
    const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length };
    const content = { at: new Date().toISOString(), machine, measures };
    writeFileSync(
      join(directory, `bench-${this.#name}.json`),
      `${JSON.stringify(content, null, 2)}\n`,
    );
  }
}

function judge({ values, bar }: Measure): Verdict {
  const ours = median(values.get(OURS) ?? []);
  if (bar === undefined || typeof bar === "number") return { ours, limit: bar };
  const other = values.get(bar.of);
  return { ours, limit: other === undefined ? undefined : bar.times * median(other) };
}

function cell({ values, digits = 2 }: Measure, column: string): string {
  const own = values.get(column);
  if (own === undefined || own.length === 0) return "–";
  const middle = median(own).toFixed(digits);
  if (own.length === 1) return middle;
  return `${middle} (${Math.min(...own).toFixed(digits)}–${Math.max(...own).toFixed(digits)})`;
}

function verdictCells(measure: Measure): [string, string] {
  const { bar, values, digits = 2 } = measure;
  if (bar === undefined) return ["", ""];
  const { ours, limit } = judge(measure);
  const text = typeof bar === "number" ? `≤ ${bar}` : `≤ ${bar.times} × ${bar.of}`;
  if (limit === undefined) return [text, "–"];
  const mark = ours <= limit ? "" : " missed";
  if (typeof bar === "number") return [text, `${ours.toFixed(digits)}${mark}`];
  return [text, `${(ours / median(values.get(bar.of) ?? [])).toFixed(2)}${mark}`];
}
