import { CookieError, isCookieError, type RunId } from "@cookie-agent/sdk/protocol";
import { RunLog } from "../event/run-log.ts";
import type { Policy } from "../permission/compile-rules.ts";
import type { AdmittedRun } from "../run/admit-run.ts";
import { classifyCall } from "../run/classify-call.ts";
import { RunContext } from "../run/run-context.ts";
import { type CancelReason, describeRunError, runLoop } from "../run/run-loop.ts";
import { SessionTitle } from "../run/session-title.ts";
import type { SessionInputs } from "./session-inputs.ts";
import type { SessionParts } from "./session-parts.ts";
import { settleInterrupted, type UnrecordedEnd } from "./settle-interrupted.ts";

const PERMISSION: CancelReason = { reason: "permission" };

interface RunningRun {
  readonly run: AdmittedRun;
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

export interface RunSlotParts extends SessionParts {
  readonly inputs: Pick<SessionInputs, "atBoundary">;
  /** The rules in force now. */
  policy(): Policy;
  /** Told when the slot is free again; the run counts as ended once this is done. */
  onFree(): Promise<void>;
}

/**
 * The place for the one run that a session may have at a time. A launched run leaves it by itself; its last word is
 * then in the log, or is written by the next `settle`.
 */
export class RunSlot {
  readonly #parts: RunSlotParts;
  readonly #title: SessionTitle;
  #running: RunningRun | null = null;
  /** Why the last run ended, until the log says it. */
  #unrecorded: UnrecordedEnd | null = null;

  constructor(parts: RunSlotParts) {
    this.#parts = parts;
    const { facts, headless } = parts.services;
    this.#title = new SessionTitle({
      config: facts.config.sessionTitle,
      headless,
      onSearched: async () => {
        if (this.#running === null) await parts.onFree();
      },
    });
  }

  /** Null while the slot is free. */
  get run(): AdmittedRun | null {
    return this.#running?.run ?? null;
  }

  /** Resolves once the run has ended; at once when the slot is free. */
  get ended(): Promise<void> {
    return this.#running?.ended ?? Promise.resolve();
  }

  /** Sets going a run whose start is durable; the slot must be free. */
  launch(run: AdmittedRun, maxTurns: number | null): void {
    const { sessionId, rootSessionId, services, log, state, presence, gate, inputs } = this.#parts;
    const { budget } = this.#parts;
    const controller = new AbortController();
    const runLog = new RunLog(log);
    const context: RunContext = new RunContext({
      sessionId,
      rootSessionId,
      run,
      view: state,
      stages: {
        ...services.stages,
        log: runLog,
        gate,
        policy: () => this.#parts.policy(),
        classify: (call, asking) =>
          classifyCall(context, call, asking, (reason) => controller.abort(reason)),
        // Nobody will ever answer, so nothing of this run may go on as if somebody had said no (S 6.7, C 7.3).
        ...(services.headless && { onEscalated: () => controller.abort(PERMISSION) }),
      },
      workspaceRoot: services.facts.workspaceRoot,
      ...(budget && { budget }),
    });
    const work = runLoop(
      context,
      {
        stdinAttended: () => presence.attended,
        atInputBoundary: (act) => inputs.atBoundary(act),
        compactsAtEnd: !services.headless,
        maxTurns,
        stop: (reason) => controller.abort(reason),
        title: this.#title,
      },
      controller.signal,
    );
    const ended = work
      .catch((error: unknown) => this.#fail(run, runLog, error))
      .finally(() => {
        this.#running = null;
        return this.#parts.onFree();
      });
    this.#running = { run, controller, ended };
  }

  /** Asks the run to stop; idempotent. True while the run had not ended by itself (S-148). */
  cancel(runId: RunId, reason: string | null): boolean {
    const running = this.#running;
    if (running?.run.runId !== runId) return false;
    const why: CancelReason = { reason };
    running.controller.abort(why);
    return true;
  }

  /** Cancels whatever runs and waits for its last word. */
  async clear(reason: string): Promise<void> {
    if (this.#running !== null) {
      const { run, ended } = this.#running;
      this.cancel(run.runId, reason);
      await ended;
    }
    await this.#title.close();
  }

  /** What is still being looked for beside an ended run would name what no longer counts. */
  giveUpTitle(): Promise<void> {
    return this.#title.close();
  }

  /** Writes the terminal events that a run has left open, of this process or of one that crashed (S-085, S-096). */
  async settle(): Promise<void> {
    const drafts = settleInterrupted(this.#parts.state, {
      unrecorded: this.#unrecorded,
      // Its end is still to come.
      keepsInternalAgents: this.#title.isSearching,
    });
    if (drafts.length > 0) await this.#parts.log.append(drafts);
    this.#unrecorded = null;
  }

  /** Last word of a run whose loop threw: recorded if the log can be written, else told to every subscriber. */
  async #fail(run: AdmittedRun, runLog: RunLog, error: unknown): Promise<void> {
    const { services, log } = this.#parts;
    const failure = describeRunError(error);
    services.logger.log("error", "run failed", { error: failure.message });
    try {
      await this.#title.close();
      // A turn that has come is not lost with what followed it. If it cannot be recorded, neither can the end.
      await runLog.flush().catch(() => undefined);
      this.#unrecorded = { runId: run.runId, error: failure };
      await this.settle();
    } catch (writing) {
      const cause = isCookieError(writing, "storage_failed") ? writing : error;
      log.failure = isCookieError(cause)
        ? cause
        : new CookieError("engine", "the run hit an internal error", { cause });
      log.events.dropSubscribers();
    }
  }
}
