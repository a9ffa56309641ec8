import type { ModelErrorSummary, RunError } from "@cookie-agent/sdk/protocol";
import type { BoundModel } from "../model/bound-model.ts";
import { safeText } from "../support/safe-text.ts";
import { siteOf } from "../tool/dispatch-stages.ts";
import { beforeSelect } from "./before-run.ts";
import type { RunContext } from "./run-context.ts";

/** How a turn ends that is not committed. */
export type TurnFailure =
  | { readonly kind: "failed"; readonly error: RunError }
  /** Without a reason it is that of whoever cancelled the run. */
  | { readonly kind: "cancelled"; readonly reason?: string };

/** Moves to the next chain entry, with fresh counters; how the run ends when it cannot (S-136). */
export async function fallBack(
  context: RunContext,
  error: ModelErrorSummary,
  signal: AbortSignal,
): Promise<TurnFailure | null> {
  const { position, run } = context;
  const from = run.chain[position.index];
  const to = run.chain[position.index + 1];
  if (from === undefined || to === undefined) return lastError(error);
  const refused = await refusedFallback(context, { from, to, error }, signal);
  if (refused !== null) return refused;
  await context.log.append([
    context.draft({
      type: "model_fallback",
      from: from.selection,
      to: to.selection,
      from_fallback_index: position.index,
      to_fallback_index: position.index + 1,
      attempts_on_from: position.retries + 1,
      error,
    }),
  ]);
  position.index += 1;
  position.retries = 0;
  return null;
}

/** A model that may not be fallen back to leaves the run with the error that it has (E-163). */
async function refusedFallback(
  { stages: { hooks }, callContext }: RunContext,
  change: { from: BoundModel; to: BoundModel; error: ModelErrorSummary },
  signal: AbortSignal,
): Promise<TurnFailure | null> {
  if (hooks?.has("model_before_select") !== true) return null;
  const from = change.from.selection;
  const selection = { from, to: change.to.selection, source: "fallback_restore" as const };
  try {
    const outcome = await beforeSelect(hooks, siteOf(callContext, null), selection, signal);
    if (outcome.kind === "passed") return null;
    if (outcome.kind !== "failure") return lastError(change.error);
    const message = safeText(outcome.reason, 4096);
    return {
      kind: "failed",
      error: { code: "operation_blocked", message, model_error: change.error },
    };
  } catch (error) {
    if (signal.aborted) return { kind: "cancelled" };
    throw error;
  }
}

/** The run ends with what the model failed with. */
export function lastError(failure: ModelErrorSummary): TurnFailure {
  return {
    kind: "failed",
    error: { code: "model_error", message: failure.message, model_error: failure },
  };
}

/** The run ends because its conversation is longer than the model takes, and could not be made shorter. */
export function tooLong(failure: ModelErrorSummary, problem: string): TurnFailure {
  const message = safeText(`${failure.message}: ${problem}`, 4096);
  return { kind: "failed", error: { code: "model_error", message, model_error: failure } };
}
