import { randomUUID } from "node:crypto";
import type { CookieClient, SessionNews } from "@cookie-agent/sdk/client";
import {
  isCookieError,
  RunCancel,
  type RunId,
  type RunSelection,
  RunStart,
  type SessionId,
  type StoredEvent,
  type UsageRollup,
  UsageSum,
} from "@cookie-agent/sdk/protocol";
import { ExitCode, ExitError } from "../exit-code.ts";
import type { StopCause } from "./interrupt-signal.ts";

export interface DriveOptions {
  readonly sessionId: SessionId;
  /** Events up to here are older than the run. */
  readonly cursor: number;
  readonly selection: RunSelection;
  readonly input: string;
  readonly maxTurns: number;
  readonly timeoutMs: number;
  /** True: the output of running calls is followed too. */
  readonly outputs: boolean;
  /** Aborted with a `StopCause` when the run is to stop. */
  readonly signal: AbortSignal;
}

/** Who is told what happens while the run goes on. */
export interface RunObserver {
  onEvent(event: StoredEvent): void;
  /** What is recorded of the session meanwhile, outside any run. */
  onSessionEvent?(event: StoredEvent): void;
  onOutput(news: Extract<SessionNews, { type: "output" | "output_gap" }>): void;
}

/** How the reason of a run begins that has used up its budget. */
const BUDGET = "budget_exceeded:";

type Cancellation = "permission" | "timeout" | StopCause;

export interface RunEnd {
  readonly runId: RunId;
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  readonly exitCode: ExitCode;
  readonly turns: number;
  readonly approvalRejections: number;
  readonly eventRecoveries: number;
  /** Why it was cancelled: the reason its terminal event records; null when it was not or none was given. */
  readonly cancellation: string | null;
  readonly finalText: string | null;
  readonly usage: UsageRollup;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * Starts a run and follows it to its terminal event. The kernel stops it at the turn limit; timeout, the user and a
 * permission that nobody could grant cancel it from here. What it ended with decides the exit code (C 7.3).
 */
export async function driveRun(
  client: CookieClient,
  options: DriveOptions,
  observer: RunObserver,
): Promise<RunEnd> {
  const news = client.subscribe(options.sessionId, {
    cursor: options.cursor,
    outputs: options.outputs,
  });
  const runId = await startRun(client, options);
  const canceller = new RunCanceller(client, runId, options);
  try {
    return await follow(news, runId, options, observer, canceller);
  } finally {
    canceller.dispose();
  }
}

/** A run that cannot start is a failure of set-up, save when only its model is missing or a plugin handled the input. */
async function startRun(client: CookieClient, options: DriveOptions): Promise<RunId> {
  try {
    const { run_id: runId } = await client.request(RunStart, {
      session_id: options.sessionId,
      client_run_id: `run-${randomUUID()}`,
      selection: options.selection,
      input: options.input,
      max_turns: options.maxTurns,
    });
    return runId;
  } catch (error) {
    if (!isCookieError(error)) throw error;
    throw new ExitError(exitCodeOfStart(error.code), error.code, error.message, error);
  }
}

function exitCodeOfStart(code: string): ExitCode {
  // A plugin has done what was asked.
  if (code === "input_handled") return ExitCode.success;
  return code === "no_runnable_model" ? ExitCode.failure : ExitCode.setup;
}

async function follow(
  news: AsyncIterable<SessionNews>,
  runId: RunId,
  options: DriveOptions,
  observer: RunObserver,
  canceller: RunCanceller,
): Promise<RunEnd> {
  const usage = new UsageSum();
  let turns = 0;
  let approvalRejections = 0;
  let eventRecoveries = 0;
  let judgedTool = "a tool call";
  const end = (
    status: RunEnd["status"],
    rest: Partial<Pick<RunEnd, "finalText" | "error" | "cancellation">> = {},
  ): RunEnd => ({
    runId,
    status,
    exitCode: exitCodeOf(status, rest.cancellation ?? null),
    turns,
    approvalRejections,
    eventRecoveries,
    cancellation: rest.cancellation ?? null,
    finalText: rest.finalText ?? null,
    usage: usage.rollup(),
    error: rest.error ?? null,
  });
  for await (const item of news) {
    if (item.type === "recovered") {
      eventRecoveries += 1;
      continue;
    }
    if (item.type === "plugin_event") continue;
    if (item.type !== "event") {
      observer.onOutput(item);
      continue;
    }
    if (item.event.run_id === null) observer.onSessionEvent?.(item.event);
    if (item.event.run_id !== runId) continue;
    const { payload } = item.event;
    observer.onEvent(item.event);
    switch (payload.type) {
      case "model_turn_committed":
        turns += 1;
        break;
      case "model_usage_recorded":
        usage.add(payload);
        break;
      case "internal_agent_usage_recorded":
        // A title is the session's, and may come before or after the end of its run.
        if (payload.kind !== "session_title") usage.add(payload);
        break;
      case "approval_requested":
        judgedTool = payload.request.tool;
        break;
      case "approval_finalized":
        if (payload.decision.status !== "approved") {
          approvalRejections += 1;
          if (isEscalation(payload.decision.reason)) canceller.cancel("permission");
        }
        break;
      case "run_completed":
        return end("completed", { finalText: payload.final_text });
      case "run_failed":
        return end("failed", {
          error: { code: payload.error.code, message: payload.error.message },
        });
      case "run_cancelled":
        return end("cancelled", {
          cancellation: payload.reason,
          error: {
            code: "cancelled",
            message: describeCancellation(payload.reason, options, judgedTool),
          },
        });
      case "run_interrupted":
        return end("interrupted", {
          error: { code: "interrupted", message: payload.reason ?? "the run was interrupted" },
        });
      default:
        break;
    }
  }
  throw new Error("the connection to the kernel ended before the run did");
}

/** The one place that stops a run; the first cause counts. */
class RunCanceller {
  readonly #client: CookieClient;
  readonly #runId: RunId;
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.cancel(this.#signal.reason as StopCause);
  #cause: Cancellation | null = null;

  constructor(client: CookieClient, runId: RunId, options: DriveOptions) {
    this.#client = client;
    this.#runId = runId;
    this.#signal = options.signal;
    this.#timer = setTimeout(() => this.cancel("timeout"), options.timeoutMs);
    this.#signal.addEventListener("abort", this.#onAbort, { once: true });
    if (this.#signal.aborted) this.#onAbort();
  }

  cancel(cause: Cancellation): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    // the run's terminal event is what is waited for; a lost request ends the subscription as well
    this.#client.request(RunCancel, { run_id: this.#runId, reason: cause }).catch(() => undefined);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
  }
}

function isEscalation(reason: string): boolean {
  return reason === "unattended" || reason === "auto_approve_n_rejected";
}

function exitCodeOf(status: RunEnd["status"], cancellation: string | null): ExitCode {
  if (status === "completed") return ExitCode.success;
  if (status === "failed") return ExitCode.failure;
  return cancellation === "permission" ? ExitCode.permission : ExitCode.cancelled;
}

function describeCancellation(
  reason: string | null,
  options: DriveOptions,
  judgedTool: string,
): string {
  switch (reason) {
    case "permission":
      return `cancelled: ${judgedTool} needed an approval that nobody could give; allow it with --allowed-tools or choose a --permission-mode`;
    case "turns":
      return `cancelled: the limit of ${options.maxTurns} model turns was reached (--max-turns)`;
    case "timeout":
      return `cancelled: the run took longer than ${options.timeoutMs / 1000} s (--timeout)`;
    case "user":
      return "cancelled by the user";
    case "output":
      return "cancelled: the output cannot be written any more";
    default:
      if (reason?.startsWith(BUDGET) === true) {
        return `cancelled: the session has used up budget.${reason.slice(BUDGET.length)} of the configuration; raise it there, or start a new session`;
      }
      return `cancelled: ${reason ?? "without a stated reason"}`;
  }
}
