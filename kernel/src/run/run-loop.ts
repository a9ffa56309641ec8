import {
  type EventPayload,
  isCookieError,
  type ModelTurn,
  type RunError,
  type ToolCallPart,
} from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import { safeLines } from "../support/safe-text.ts";
import type { TurnCall } from "../tool/dispatch-stages.ts";
import { dispatchTurn } from "../tool/dispatch-turn.ts";
import { attemptTurn, type TurnOutcome } from "./attempt-turn.ts";
import type { RunContext } from "./run-context.ts";
import type { SessionTitle } from "./session-title.ts";

export interface RunSettings {
  /** True while someone can type into a call's standard input. */
  stdinAttended(): boolean;
  /** Keeps steering and recall out while `act` takes in what was said or ends the run. */
  atInputBoundary<T>(act: () => Promise<T>): Promise<T>;
  readonly title: Pick<SessionTitle, "propose">;
  /** Whether a run that is over still summarizes for the next one, which else does it itself (S 10.2). */
  readonly compactsAtEnd: boolean;
  /** Model turns after which the run may not ask for more; null: no limit. */
  readonly maxTurns: number | null;
  /** Cancels the run, as a client would. */
  stop(reason: CancelReason): void;
}

const TURNS: CancelReason = { reason: "turns" };

type CommittedOutcome = Extract<TurnOutcome, { kind: "committed" }>;

/** Why a run was asked to stop; recorded with `run_cancelled`. */
export interface CancelReason {
  readonly reason: string | null;
}

/**
 * Carries a run from its submitted input to its one terminal event: model turn, tool calls, again, until a turn
 * asks for nothing and nobody has said more (S 5).
 *
 * A failure of the model, a tool or a plugin ends as an event. It rejects only when the log cannot be written.
 * @param signal Aborted with a `CancelReason` as its reason when the run is cancelled.
 */
export async function runLoop(
  context: RunContext,
  settings: RunSettings,
  signal: AbortSignal,
): Promise<void> {
  for (let turns = 1; ; turns += 1) {
    const outcome = await attemptTurn(context, signal);
    // Whoever counts the turns from outside learns of one too late to keep its calls from running.
    if (turns === settings.maxTurns && asksForCalls(outcome)) settings.stop(TURNS);
    const hasCalls =
      outcome.kind === "committed" && (await carryOut(context, settings, outcome, signal));
    const isAtEnd = !hasCalls && context.view.pendingInputs.length === 0;
    const mayCompact = outcome.kind === "committed" && !signal.aborted;
    if (
      mayCompact &&
      (settings.compactsAtEnd || !isAtEnd) &&
      context.watch.isDueAfter(outcome.turn)
    ) {
      await context.watch.compact(signal);
    }
    const isOver = await settings.atInputBoundary(async () => {
      const end = endOf(outcome, signal);
      if (end === null) {
        const wasSteered = await promoteInputs(context);
        if (hasCalls || wasSteered) return false;
      }
      await context.log.append([context.draft(end ?? completion(outcome))]);
      return true;
    });
    if (isOver) return;
  }
}

function asksForCalls(outcome: TurnOutcome): boolean {
  return outcome.kind === "committed" && toolCalls(outcome.turn).length > 0;
}

/** Records why a run could not go on; used for what went wrong outside a model attempt. */
export function describeRunError(error: unknown): RunError {
  const known = isCookieError(error);
  return {
    code: known ? error.code : "engine",
    message: safeLines(known ? error.message : "the run hit an internal error", 4096),
    model_error: null,
  };
}

/** What follows from a committed turn: a title, its calls. False when it has none. */
async function carryOut(
  context: RunContext,
  settings: RunSettings,
  { turn, turnSeq, speculation }: CommittedOutcome,
  signal: AbortSignal,
): Promise<boolean> {
  const calls = toolCalls(turn);
  try {
    settings.title.propose(context, signal);
    if (calls.length === 0) return false;
    await dispatchTurn(
      {
        ...context.callContext,
        modelTurnSeq: turnSeq,
        calls,
        toolSet: context.run.toolSet,
        // Asked when a call starts: approvals may have taken long.
        get stdinAttended() {
          return settings.stdinAttended();
        },
        speculation,
      },
      context.stages,
      signal,
    );
    return true;
  } finally {
    speculation.discard();
  }
}

/** Makes what was said meanwhile part of the conversation, oldest first; true when there was any (S-146). */
async function promoteInputs(context: RunContext): Promise<boolean> {
  const drafts: EventDraft[] = context.view.pendingInputs.map(({ text }) =>
    context.draft({ type: "user_input_submitted", input: text }),
  );
  if (drafts.length === 0) return false;
  await context.log.append(drafts);
  return true;
}

/** The terminal event that an outcome or a cancel asks for; null while the run may go on. */
function endOf(outcome: TurnOutcome, signal: AbortSignal): EventPayload | null {
  if (outcome.kind === "failed") return { type: "run_failed", error: outcome.error };
  if (outcome.kind === "committed" && !signal.aborted) return null;
  if (outcome.kind === "cancelled" && outcome.reason !== undefined) {
    return { type: "run_cancelled", reason: outcome.reason };
  }
  const { reason } = signal.reason as CancelReason;
  return { type: "run_cancelled", reason };
}

function completion(outcome: TurnOutcome): EventPayload {
  const content = outcome.kind === "committed" ? outcome.turn.content : [];
  const text = content
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");
  return { type: "run_completed", final_text: text === "" ? null : text };
}

function toolCalls(turn: ModelTurn): TurnCall[] {
  return turn.content
    .map((part, contentIndex) => ({ part, contentIndex }))
    .filter((call): call is { part: ToolCallPart; contentIndex: number } => {
      return call.part.type === "tool_call";
    });
}
