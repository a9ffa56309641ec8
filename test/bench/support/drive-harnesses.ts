import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Harness, installedHarnesses, peerPath } from "./harness.ts";
import { type ModelProcess, startModelProcess } from "./model-process.ts";
import { childrenCpuSeconds, ProcessTree, waitForCalm } from "./process-tree.ts";
import { FILE_COUNT, fileName, promptFor, type Scenario, type ServedRequest } from "./scenario.ts";

export const RUNS = Number(process.env["COOKIE_BENCH_RUNS"] ?? 5);
export const CALM_LIMIT_MS = Number(process.env["COOKIE_BENCH_CALM_MS"] ?? 15_000);
const RUN_LIMIT_MS = 300_000;

export interface SeriesOptions {
  readonly scenario: Scenario;
  readonly count?: number;
  readonly sampleMs?: number;
  /** Continues the newest session of that scenario instead of beginning one. */
  readonly resumed?: Scenario;
}

/** One run of one program from spawn to exit. */
export interface RunFigures {
  readonly wallSeconds: number;
  /** The program and every child that it waited for. */
  readonly cpuSeconds: number;
  /** From spawn to the head of the first request of the conversation. */
  readonly firstRequestSeconds: number;
  readonly peakTreeMib: number;
  readonly peakProcessMib: number;
  /** From the end of each answer that held calls to the head of the next request. */
  readonly gapsMs: readonly number[];
  readonly writtenBytes: number;
  readonly resultLength: number;
}

export type Series = ReadonlyMap<Harness["name"], readonly RunFigures[]>;

/** Runs ours and the peers, in turn, against one scripted model. */
export class HarnessBench {
  readonly #root: string;
  readonly #workspace: string;
  readonly #model: ModelProcess;
  readonly #harnesses: readonly Harness[];
  readonly #series = new Map<string, Promise<Series>>();

  private constructor(root: string, workspace: string, model: ModelProcess) {
    this.#root = root;
    this.#workspace = workspace;
    this.#model = model;
    this.#harnesses = installedHarnesses();
  }

  static async open(): Promise<HarnessBench> {
    const root = await realpath(await mkdtemp(join(tmpdir(), "cookie-bench-")));
    const workspace = join(root, "workspace");
    await mkdir(workspace);
    for (let index = 0; index < FILE_COUNT; index += 1) {
      const lines = Array.from(
        { length: 20 },
        (_, n) => `Line ${n + 1} of note ${index}, fifty long.`,
      );
      await writeFile(join(workspace, fileName(index)), `${lines.join("\n")}\n`);
    }
    return new HarnessBench(root, workspace, await startModelProcess(workspace));
  }

  /** One uncounted run of each program, then the counted ones, interleaved; the same series is run once. */
  series(options: SeriesOptions): Promise<Series> {
    const key = JSON.stringify(options);
    const known = this.#series.get(key) ?? this.#measure(options);
    this.#series.set(key, known);
    return known;
  }

  async close(): Promise<void> {
    await this.#model.close();
    await rm(this.#root, { recursive: true, force: true });
  }

  async #measure(options: SeriesOptions): Promise<Series> {
    const series = new Map<Harness["name"], RunFigures[]>();
    for (let run = 0; run <= RUNS; run += 1) {
      for (const harness of this.#harnesses) {
        const figures = await this.#runOnce(harness, options);
        if (run > 0) series.set(harness.name, [...(series.get(harness.name) ?? []), figures]);
      }
    }
    if (options.scenario === "flood") {
      for (const harness of this.#harnesses) {
        await rm(this.#homeOf(harness, "flood"), { recursive: true, force: true });
      }
    }
    return series;
  }

  async #runOnce(harness: Harness, options: SeriesOptions): Promise<RunFigures> {
    const { scenario, count = 1, sampleMs = 25, resumed } = options;
    const home = this.#homeOf(harness, resumed ?? scenario);
    const scratch = join(home, "tmp");
    await mkdir(scratch, { recursive: true });
    await harness.configure(home, this.#model.baseUrl);
    const prompt = promptFor(scenario, count);
    const args = resumed === undefined ? harness.run(prompt) : await harness.resume(prompt, home);
    const mark = `COOKIE_BENCH_RUN=${randomUUID()}`;
    await this.#model.takeServed();
    const bytesBefore = await byteLengthBelow(home);
    await waitForCalm(CALM_LIMIT_MS);

    const tree = new ProcessTree(mark);
    const cpuBefore = childrenCpuSeconds();
    const startedAtUs = nowUs();
    const child = spawn(harness.program, [...harness.leadingArguments, ...args], {
      cwd: this.#workspace,
      env: {
        PATH: `${peerPath()}${process.env["PATH"] ?? ""}`,
        HOME: home,
        TMPDIR: scratch,
        SHELL: "/bin/bash",
        LANG: "C.UTF-8",
        NO_COLOR: "1",
        [mark.slice(0, mark.indexOf("="))]: mark.slice(mark.indexOf("=") + 1),
        ...harness.env,
      },
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    let complaint = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(-2000);
    });
    const sampler = setInterval(() => tree.sample(), sampleMs);
    const limit = setTimeout(() => child.kill("SIGKILL"), RUN_LIMIT_MS);
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", resolve);
    });
    const endedAtUs = nowUs();
    clearInterval(sampler);
    clearTimeout(limit);
    const cpuSeconds = childrenCpuSeconds() - cpuBefore;
    tree.killLeftovers();
    const served = (await this.#model.takeServed()).filter(({ main }) => main);
    const [first] = served;
    if (exitCode !== 0 || first === undefined) {
      throw new Error(`${harness.name} left ${scenario} with ${exitCode}: ${complaint}`);
    }
    return {
      wallSeconds: (endedAtUs - startedAtUs) / 1e6,
      cpuSeconds,
      firstRequestSeconds: (first.arrivedAtUs - startedAtUs) / 1e6,
      peakTreeMib: tree.peakTreeKib / 1024,
      peakProcessMib: tree.peakProcessKib / 1024,
      gapsMs: gapsOf(served),
      writtenBytes: (await byteLengthBelow(home)) - bytesBefore,
      resultLength: served.at(-1)?.resultLength ?? 0,
    };
  }

  #homeOf(harness: Harness, scenario: Scenario): string {
    return join(this.#root, "homes", harness.name, scenario);
  }
}

function gapsOf(served: readonly ServedRequest[]): number[] {
  return served.slice(1).flatMap((request, index) => {
    const before = served[index];
    return before === undefined || before.callCount === 0
      ? []
      : [(request.arrivedAtUs - before.endedAtUs) / 1000];
  });
}

async function byteLengthBelow(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) =>
        stat(join(entry.parentPath, entry.name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
