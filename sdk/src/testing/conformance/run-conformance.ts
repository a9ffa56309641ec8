import { CookieError } from "../../protocol/errors.ts";
import {
  Bench,
  type BenchOptions,
  type ConformanceLimits,
  DEFAULT_LIMITS,
  requireNotCancelled,
} from "./bench.ts";
import type { Check } from "./check.ts";
import { checkCancel } from "./check-cancel.ts";
import { checkDeclarations } from "./check-declarations.ts";
import { checkDynamicTools } from "./check-dynamic-tools.ts";
import { checkEmit } from "./check-emit.ts";
import { checkEnvironment } from "./check-environment.ts";
import { checkFlood } from "./check-flood.ts";
import { checkHooks } from "./check-hooks.ts";
import { checkIntroduction } from "./check-introduction.ts";
import { checkLeaving } from "./check-leaving.ts";
import { checkLines } from "./check-lines.ts";
import { checkMessages } from "./check-messages.ts";
import { checkPreparation } from "./check-preparation.ts";
import { checkResults } from "./check-results.ts";
import { checkStandardOutput } from "./check-standard-output.ts";
import { checkStdin } from "./check-stdin.ts";
import { type ConformanceSamples, readSamples } from "./samples.ts";
import { findMissingProgram, readSubject, type Subject } from "./subject.ts";
import { Finding, NotApplicable } from "./verdict.ts";

const CHECKS: readonly Check[] = [
  checkLines,
  checkMessages,
  checkStandardOutput,
  checkIntroduction,
  checkDeclarations,
  checkEnvironment,
  checkLeaving,
  checkPreparation,
  checkResults,
  checkFlood,
  checkCancel,
  checkStdin,
  checkDynamicTools,
  checkEmit,
  checkHooks,
];

/** What is tried: a folder with a manifest, or a program that has none. */
export type ConformanceTarget =
  | { readonly directory: string }
  | {
      readonly command: string;
      readonly args?: readonly string[];
      /** As its entry would call it. */
      readonly name: string;
    };

export interface ConformanceOptions {
  /** Beside those of the folder's `conformance.json`, which they replace member by member. */
  readonly samples?: ConformanceSamples;
  readonly limits?: Partial<ConformanceLimits>;
  /** Entry of the shared host (`@cookie-agent/sdk/host`): tries the plugin behind `ch` too, where it may run so. */
  readonly hostEntry?: string;
  /** Only these checks, by id. */
  readonly only?: readonly string[];
  /** Ends the run: its processes and folders are gone when it then rejects with `cancelled`. */
  readonly signal?: AbortSignal;
  /** Told as soon as each one is known. */
  onResult?(result: ConformanceResult): void;
}

/** One line of the checklist for one plugin. */
export interface ConformanceResult {
  /** `C-nn` of section 16. */
  readonly check: string;
  readonly title: string;
  /** Requirements behind it. */
  readonly ids: readonly string[];
  /** In a process of its own, or in a shared host. */
  readonly run: "direct" | "behind_ch";
  readonly outcome: "passed" | "failed" | "skipped";
  /** What the plugin did and must do, or why there was nothing to check; null when it passed. */
  readonly reason: string | null;
}

export interface ConformanceReport {
  readonly plugin: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly results: readonly ConformanceResult[];
}

/**
 * Runs every check that section 16 marks P over a plugin (E-190), each with fresh processes in fresh folders. It ends in
 * bounded time whatever the plugin does, and leaves no process. Throws `invalid_declaration` when the manifest or
 * `conformance.json` cannot be read at all, and `invalid_params` for a check that there is none of.
 */
export async function runConformance(
  target: ConformanceTarget,
  options: ConformanceOptions = {},
): Promise<ConformanceReport> {
  requireChecks(options.only ?? []);
  const subject = await subjectOf(target);
  const samples = {
    ...("directory" in target ? await readSamples(target.directory) : {}),
    ...options.samples,
  };
  const name = "name" in target ? target.name : (subject.manifest?.name ?? "");
  const missing = findMissingProgram(samples.requires ?? [], samples.env?.["PATH"]);
  const runs = runsOf(subject, options);
  const results: ConformanceResult[] = [];
  for (const run of runs) {
    const bench: BenchOptions = {
      subject,
      name,
      samples,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
      hostEntry: run === "direct" ? null : (options.hostEntry ?? null),
      environment: name.startsWith("builtin.") || run === "behind_ch" ? "granted" : "cleared",
      signal: options.signal,
    };
    const plan =
      missing === undefined
        ? await tryStart(bench)
        : skipAll(`needs ${missing}, which is not installed`);
    for (const check of CHECKS) {
      if (options.only !== undefined && !options.only.includes(check.id)) continue;
      requireNotCancelled(options.signal);
      const verdict = plan.verdict(check) ?? (await runCheck(check, plan.bench ?? bench));
      requireNotCancelled(options.signal);
      const { id, title, ids } = check;
      const result = { check: id, title, ids, run, ...verdict };
      results.push(result);
      options.onResult?.(result);
    }
  }
  return { plugin: name, outcome: outcomeOf(results), results };
}

/** A misspelt one would check nothing, and nothing would have failed. */
function requireChecks(only: readonly string[]): void {
  const ids = CHECKS.map(({ id }) => id);
  const unknown = only.find((id) => !ids.includes(id));
  if (unknown === undefined) return;
  throw new CookieError(
    "invalid_params",
    `there is no check ${unknown}; those of a plugin are ${ids.join(", ")}`,
  );
}

type Verdict = Pick<ConformanceResult, "outcome" | "reason">;

interface Plan {
  readonly bench?: BenchOptions;
  /** What is known without running the check. */
  verdict(check: Check): Verdict | undefined;
}

/** One that cannot even introduce itself is told so once, and not in every line. */
async function tryStart(options: BenchOptions): Promise<Plan> {
  const problem = await startProblem(options);
  if (problem === undefined) return { verdict: () => undefined };
  const inheriting = { ...options, environment: "shell" as const };
  if (options.hostEntry === null && (await startProblem(inheriting)) === undefined) {
    return { bench: inheriting, verdict: () => undefined };
  }
  return {
    verdict: ({ id }) =>
      id === checkIntroduction.id
        ? { outcome: "failed", reason: problem }
        : { outcome: "skipped", reason: `the plugin does not start (${checkIntroduction.id})` },
  };
}

function skipAll(reason: string): Plan {
  return { verdict: () => ({ outcome: "skipped", reason }) };
}

async function startProblem(options: BenchOptions): Promise<string | undefined> {
  const bench = new Bench(options);
  try {
    await bench.start(await bench.folder());
    return undefined;
  } catch (error) {
    if (error instanceof Finding) return error.message;
    throw error;
  } finally {
    await bench.close();
  }
}

async function runCheck(check: Check, options: BenchOptions): Promise<Verdict> {
  const bench = new Bench(options);
  try {
    await check.run(bench);
    return { outcome: "passed", reason: null };
  } catch (error) {
    if (error instanceof NotApplicable) return { outcome: "skipped", reason: error.message };
    if (error instanceof Finding) return { outcome: "failed", reason: error.message };
    throw error;
  } finally {
    await bench.close();
  }
}

async function subjectOf(target: ConformanceTarget): Promise<Subject> {
  if ("directory" in target) return readSubject(target.directory);
  const { command, args = [] } = target;
  return { manifest: null, manifestDigest: null, command, args, entry: null };
}

function runsOf(subject: Subject, { hostEntry }: ConformanceOptions): ("direct" | "behind_ch")[] {
  const { runtime } = subject.manifest ?? {};
  const shares = runtime?.kind === "node" && runtime.group !== undefined;
  return shares && hostEntry !== undefined ? ["direct", "behind_ch"] : ["direct"];
}

function outcomeOf(results: readonly ConformanceResult[]): ConformanceReport["outcome"] {
  if (results.some(({ outcome }) => outcome === "failed")) return "failed";
  return results.some(({ outcome }) => outcome === "passed") ? "passed" : "skipped";
}
