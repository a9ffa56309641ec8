import type { ModelTurn, Usage } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import { safeText } from "../support/safe-text.ts";
import type { DispatchContext } from "../tool/call-context.ts";
import { siteOf } from "../tool/dispatch-stages.ts";
import type { CompactionRequest, CompactionResult } from "./compact-context.ts";
import type { CompactionScene } from "./compaction-scene.ts";
import { fixedBytes, triggerTokens } from "./context-limits.ts";

/** Automatic attempts that may fail in a row before a run gives them up (S-223). */
const MAX_FAILURES = 3;
/** A checkpoint that lasts for fewer turns has not helped. */
const LASTING_TURNS = 2;

const ADVICE =
  "run `cookie session compact`, select a model with a larger context, or go on in a new session";

/** A run as far as the length of its conversation is concerned. */
export interface WatchedRun
  extends Pick<CompactionScene, "run" | "log" | "stages" | "workspaceRoot" | "budget"> {
  readonly view: Pick<CompactionScene, "history" | "estimator"> & {
    readonly lastSeq: number;
    readonly inputThroughSeq: number;
  };
  readonly position: { readonly index: number };
  readonly callContext: DispatchContext;
}

/**
 * Keeps the requests of one run within its model's context: says when the conversation is to be summarized, before a
 * request and after a turn, has it done, and gives up what does not help (S 10.2).
 */
export class ContextWatch {
  readonly #context: WatchedRun;
  #fixed: { readonly documents: unknown; readonly byteLength: number } | undefined;
  #requestBytes = 0;
  #hasOutput = false;
  #failures = 0;
  #turnsSinceCheckpoint = Number.POSITIVE_INFINITY;
  /** Size of the request at the last attempt: nothing changes before there is more to say. */
  #triedBytes = -1;
  #isOff = false;
  #hasToldOfLength = false;
  /** Recoveries in a row that did not last. */
  #shortRecoveries = 0;
  /** The request that is being made has been helped once. */
  #hasRecovered = false;

  constructor(context: WatchedRun) {
    this.#context = context;
  }

  /** A request goes out; nothing of it has been answered. */
  requested(): void {
    this.#requestBytes = this.#bytesNow();
    this.#hasOutput = false;
  }

  /** The model has begun to answer, so a failure from here on is not about what it was asked. */
  answered(): void {
    this.#hasOutput = true;
  }

  committed({ input_tokens: inputTokens }: Usage): void {
    this.#context.view.estimator.measured(this.#requestBytes, inputTokens);
    this.#turnsSinceCheckpoint += 1;
    this.#hasRecovered = false;
  }

  /** The next entry of the chain has its own recovery (S-138). */
  fellBack(): void {
    this.#hasRecovered = false;
  }

  /** Whether the next request is expected to reach the trigger; costs nothing that grows with the session (S-217). */
  get isDueBeforeRequest(): boolean {
    const trigger = this.#trigger;
    if (trigger === 0) return false;
    const { estimator } = this.#context.view;
    const byteLength = this.#bytesNow() + heldBytes(this.#context.log.held);
    if (byteLength === this.#triedBytes) return false;
    return estimator.project(byteLength) >= trigger;
  }

  /** Whether what the provider reported of a turn reaches the trigger. */
  isDueAfter({ usage }: ModelTurn): boolean {
    const trigger = this.#trigger;
    const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
    return trigger > 0 && tokens >= trigger;
  }

  /** Tries once; a run goes on with whatever came of it. */
  async compact(signal: AbortSignal): Promise<void> {
    const lasted = this.#turnsSinceCheckpoint >= LASTING_TURNS;
    const result = await this.#compact({ kind: "automatic", focus: null }, signal);
    this.#triedBytes = this.#bytesNow();
    if (signal.aborted) return;
    if (result.kind === "compacted") {
      this.#failures = lasted ? 0 : this.#failures + 1;
      if (!lasted) await this.#giveUpAfter("a summary does not keep the conversation short");
    } else if (result.kind !== "skipped") {
      this.#failures += 1;
      await this.#giveUpAfter(result.reason);
    }
    await this.#tellOfLength();
  }

  /**
   * Makes room after a provider refused a request as too long, once per request and entry of the chain (S-138). Null: the
   * request may be made again; else why not, and what the user can do.
   */
  async recover(signal: AbortSignal): Promise<string | null> {
    if (this.#hasOutput) return `it had begun to answer; ${ADVICE}`;
    if (this.#hasRecovered) return `it is still too long after a summary; ${ADVICE}`;
    this.#hasRecovered = true;
    // Each turn would go on a little, and none would ever see the result of its calls.
    if (this.#turnsSinceCheckpoint >= LASTING_TURNS) this.#shortRecoveries = 0;
    else this.#shortRecoveries += 1;
    if (this.#shortRecoveries >= MAX_FAILURES) {
      return `summaries do not keep it short enough for the model; ${ADVICE}`;
    }
    const result = await this.#compact({ kind: "overflow", focus: null }, signal);
    switch (result.kind) {
      case "compacted":
        return null;
      case "skipped":
        return `there is nothing left to summarize; ${ADVICE}`;
      case "cancelled":
      case "failed":
        return `it could not be summarized (${result.reason}); ${ADVICE}`;
    }
  }

  async #compact(request: CompactionRequest, signal: AbortSignal): Promise<CompactionResult> {
    const { compactContext } = await import("./compact-context.ts");
    const { run, view, position, log, stages, workspaceRoot, budget, callContext } = this.#context;
    const result = await compactContext(
      {
        runId: run.runId,
        site: siteOf(callContext, null),
        history: view.history,
        estimator: view.estimator,
        run,
        chainIndex: position.index,
        log,
        stages,
        workspaceRoot,
        budget,
        lastSeq: () => view.lastSeq,
        inputThroughSeq: () => view.inputThroughSeq,
      },
      request,
      signal,
    );
    if (result.kind === "compacted") this.#turnsSinceCheckpoint = 0;
    return result;
  }

  async #giveUpAfter(reason: string): Promise<void> {
    if (this.#failures < MAX_FAILURES || this.#isOff) return;
    this.#isOff = true;
    await this.#tell(
      `the conversation was not summarized any more in this run after ${MAX_FAILURES} attempts (${reason}); ${ADVICE}`,
    );
  }

  /** A provider need not refuse what is too long for its model: some just leave out the beginning. */
  async #tellOfLength(): Promise<void> {
    const limit = this.#model?.contextTokens ?? null;
    if (limit === null || this.#hasToldOfLength) return;
    const projected = this.#context.view.estimator.project(this.#bytesNow());
    if (projected <= limit) return;
    this.#hasToldOfLength = true;
    await this.#tell(
      `the next request has about ${projected} tokens, and the model takes ${limit}; ${ADVICE}`,
    );
  }

  #tell(message: string): Promise<void> {
    return this.#context.log.append([
      {
        runId: null,
        payload: {
          type: "plugin_diagnostic",
          plugin: "auto-compact",
          kind: "compaction_failed",
          message: safeText(message, 1024),
          count: 1,
        },
      },
    ]);
  }

  get #model() {
    const { run, position } = this.#context;
    return run.chain[position.index];
  }

  /** 0: nothing is done unasked. */
  get #trigger(): number {
    const { compaction } = this.#context.run;
    if (!compaction.auto || this.#isOff) return 0;
    return triggerTokens(compaction, this.#model?.contextTokens ?? null);
  }

  #bytesNow(): number {
    const { run, view } = this.#context;
    const { contextDocuments: documents, byteLength } = view.history;
    if (this.#fixed?.documents !== documents) {
      this.#fixed = { documents, byteLength: fixedBytes(run, documents) };
    }
    return this.#fixed.byteLength + byteLength;
  }
}

/** Of what the next request contains and the log does not say yet. */
function heldBytes(held: readonly EventDraft[]): number {
  let byteLength = 0;
  for (const { payload } of held) {
    if (payload.type === "tool_call_terminated") {
      byteLength += Buffer.byteLength(payload.result?.output ?? "");
    } else if (payload.type === "model_turn_committed") {
      byteLength += Buffer.byteLength(JSON.stringify(payload.turn.content));
    }
  }
  return byteLength;
}
