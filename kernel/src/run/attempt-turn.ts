import {
  type AttemptId,
  CookieError,
  type Digest,
  isCookieError,
  type ModelErrorSummary,
  type ModelTurn,
} from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import type { BoundModel, ModelRequest } from "../model/bound-model.ts";
import { ModelError } from "../model/model-error.ts";
import { stampedCost } from "../model/price-usage.ts";
import { classifyFailure, mayRetry, retryDelayMs } from "../model/retry-policy.ts";
import { createId } from "../support/create-id.ts";
import { sleep } from "../support/deadline.ts";
import { sha256Hex } from "../support/digest.ts";
import { safeText } from "../support/safe-text.ts";
import type { Speculation } from "../tool/speculation.ts";
import { type AttemptHooks, attemptHooks } from "./attempt-hooks.ts";
import { withContextDocuments } from "./compose-prompt.ts";
import { DeltaGatherer } from "./delta-gatherer.ts";
import { fallBack, lastError, type TurnFailure, tooLong } from "./fall-back.ts";
import { mayRefuseMedia } from "./judged-media.ts";
import type { RunContext } from "./run-context.ts";
import type { LoadMedia } from "./supply-media.ts";

/** More calls than this make a turn an invalid response of the provider (T-018). */
const MAX_CALLS_PER_TURN = 64;

export type TurnOutcome =
  | {
      readonly kind: "committed";
      readonly turn: ModelTurn;
      readonly turnSeq: number;
      /** Owned by whoever dispatches the turn's calls; to be discarded in any case. */
      readonly speculation: Speculation;
    }
  | TurnFailure;

/**
 * One model turn, committed: tries the current chain entry with its retries, then the next ones (S 5.3…5.6). The
 * position in the chain is sticky for the rest of the run. Rejects only when the log cannot be written.
 */
export async function attemptTurn(context: RunContext, signal: AbortSignal): Promise<TurnOutcome> {
  for (;;) {
    if (!signal.aborted && context.watch.isDueBeforeRequest) await context.watch.compact(signal);
    if (signal.aborted) return { kind: "cancelled" };
    const exceeded = context.budget?.check(context.log.held) ?? null;
    if (exceeded !== null) return { kind: "cancelled", reason: exceeded.reason };
    const result = await attemptOnce(context, signal);
    if (!("failure" in result)) return result;
    const { failure, mediaRefused } = result;
    if (mediaRefused) {
      // The next request goes without them, so this cannot happen again before there are new ones.
      context.position.retries += 1;
      continue;
    }
    const kind = classifyFailure(failure);
    if (failure.kind === "context_length") {
      const problem = await context.watch.recover(signal);
      if (signal.aborted) return { kind: "cancelled" };
      if (problem !== null) return tooLong(failure, problem);
      context.position.retries += 1;
      continue;
    }
    if (mayRetry(context.run.retry, kind, context.position.retries)) {
      const delayMs = retryDelayMs(
        context.run.retry,
        context.position.retries,
        failure.retry_after_ms,
        Math.random(),
      );
      context.position.retries += 1;
      await sleep(delayMs, signal);
      continue;
    }
    const stays =
      kind === "fail_run" ? lastError(failure) : await fallBack(context, failure, signal);
    if (stays !== null) return stays;
    context.watch.fellBack();
  }
}

async function attemptOnce(
  context: RunContext,
  signal: AbortSignal,
): Promise<TurnOutcome | { failure: ModelErrorSummary; mediaRefused: boolean }> {
  const { position, run } = context;
  const model = run.chain[position.index];
  if (model === undefined) throw new CookieError("engine", "the chain position is out of range");
  const attemptId = createId<AttemptId>();
  position.attempts += 1;
  const attempted = { context, model, attemptId, maxCalls: MAX_CALLS_PER_TURN };
  const hooks = attemptHooks(attempted, signal);
  const isPrepared = hooks?.changesRequest !== true;
  await context.log.append([
    ...openAttempt(context, model, attemptId),
    ...(isPrepared ? [requestPrepared(context, attemptId, context.run.promptFingerprint)] : []),
  ]);
  let speculation = context.speculate();
  try {
    context.watch.requested();
    let request = buildRequest(context, model);
    if (hooks !== null)
      request = await passRequest(hooks, request, { context, attemptId, isPrepared });
    let finish = await streamTurn(context, { model, attemptId, request, speculation }, signal);
    const turn = hooks === null ? finish.turn : await hooks.messageEnd(finish.turn);
    if (turn !== finish.turn) {
      // What was prepared is for calls that may not be made any more.
      speculation.discard();
      speculation = context.speculate();
      finish = { ...finish, turn };
    }
    const turnSeq = commitTurn(context, model, attemptId, finish);
    return { kind: "committed", turn, turnSeq, speculation };
  } catch (error) {
    speculation.discard();
    const failure = signal.aborted ? null : failureOf(error);
    const mediaRefused = failure !== null && mayRefuseMedia(failure) && heldUntried(context, model);
    await context.log.append([
      context.draft({
        type: "attempt_abandoned",
        attempt_id: attemptId,
        error: failure,
        ...(mediaRefused && { media_refused: true }),
      }),
    ]);
    if (failure === null) return { kind: "cancelled" };
    if (error instanceof ModelError) return { failure, mediaRefused };
    const { message } = failure;
    return { kind: "failed", error: { code: "operation_blocked", message, model_error: failure } };
  }
}

/** What the model, or a plugin that had to look at the attempt, failed with; throws what is neither's. */
function failureOf(error: unknown): ModelErrorSummary {
  if (error instanceof ModelError) return error.summary;
  if (!isCookieError(error, "operation_blocked")) throw error;
  return { ...modelFailure("abort", safeText(error.message, 4096), false), stage: "hook" };
}

/** Whether the last request held media of which the model has not yet taken any. */
function heldUntried({ view, media }: RunContext, { selection }: BoundModel): boolean {
  const untried = view.history.media.untriedBy(selection.model);
  return untried.some((part) => media.get(part)?.kind === "media");
}

function openAttempt(context: RunContext, model: BoundModel, attemptId: AttemptId): EventDraft[] {
  const { position, run, view } = context;
  return [
    ...view.unappliedInputs.map((seq) =>
      context.draft({ type: "user_input_applied", user_input_seq: seq }),
    ),
    context.draft({
      type: "model_attempt_started",
      attempt_id: attemptId,
      attempt_ordinal: position.attempts,
      fallback_index: position.index,
      retry_ordinal: position.retries,
      resolved_model: model.selection,
      prompt_fingerprint: run.promptFingerprint,
    }),
  ];
}

function requestPrepared(
  context: RunContext,
  attemptId: AttemptId,
  promptFingerprint: Digest,
): EventDraft {
  return context.draft({
    type: "model_request_prepared",
    attempt_id: attemptId,
    prompt_fingerprint: promptFingerprint,
  });
}

/** The request as plugins leave it; it counts as prepared once they are done with it. */
async function passRequest(
  hooks: AttemptHooks,
  built: ModelRequest,
  attempt: { context: RunContext; attemptId: AttemptId; isPrepared: boolean },
): Promise<ModelRequest> {
  const { context, attemptId, isPrepared } = attempt;
  const request = await hooks.beforeRequest(built);
  if (isPrepared) return request;
  const fingerprint =
    request.system === built.system ? context.run.promptFingerprint : sha256Hex(request.system);
  await context.log.append([requestPrepared(context, attemptId, fingerprint)]);
  return request;
}

/** Streams one response; deltas are published as they come, a named tool's plugin is warmed at once (E-057). */
async function streamTurn(
  context: RunContext,
  attempt: {
    readonly model: BoundModel;
    readonly attemptId: AttemptId;
    readonly request: ModelRequest;
    readonly speculation: Speculation;
  },
  signal: AbortSignal,
): Promise<{ turn: ModelTurn; warnings: string[] }> {
  const { model, attemptId, request, speculation } = attempt;
  const deltas = new DeltaGatherer((type, text) =>
    context.log.appendStream(context.draft({ type, attempt_id: attemptId, text })),
  );
  speculation.requestSent();
  try {
    const supplied = context.view.history.hasMedia
      ? await withMedia(context, model, request)
      : request;
    for await (const part of model.stream(supplied, signal)) {
      switch (part.type) {
        case "text_delta":
        case "reasoning_delta":
          context.watch.answered();
          deltas.add(part.type, part.text);
          break;
        case "tool_named":
          context.watch.answered();
          speculation.toolNamed(part.name);
          break;
        case "tool_arguments":
          speculation.argumentsComplete(part.part);
          break;
        case "finish":
          return part;
      }
    }
  } finally {
    deltas.flush();
  }
  throw new ModelError(
    modelFailure("unexpected_eof", "the model's answer ended before it was complete", true),
  );
}

function buildRequest(context: RunContext, model: BoundModel): ModelRequest {
  const { run, view } = context;
  return {
    system: withContextDocuments(run.systemPrompt, view.history.contextDocuments),
    history: view.history.messages,
    tools: run.toolSet.specs,
    maxOutputTokens: outputCap(context, model),
    usedCallIds: view.history.usedCallIds,
  };
}

async function withMedia(
  context: RunContext,
  model: BoundModel,
  request: ModelRequest,
): Promise<ModelRequest> {
  const [{ supplyMedia }, { loadMedia }] = await Promise.all([
    import("./supply-media.ts"),
    import("../artifact/load-media.ts"),
  ]);
  const { stages, rootSessionId } = context;
  const load: LoadMedia = (sha256, byteLength) =>
    loadMedia(stages.artifacts, rootSessionId, sha256, byteLength);
  const refused = context.view.history.media.refusedBy(model.selection.model);
  context.media = await supplyMedia(request.history, model.media, load, context.media, refused);
  return { ...request, media: context.media };
}

/** The smaller of agent and model cap; null leaves it to the model when the agent sets none (S 5.3). */
function outputCap({ run }: RunContext, model: BoundModel): number | null {
  const { max_output_tokens: agentCap } = run.agent;
  if (agentCap === 0) return null;
  return model.outputTokens === null ? agentCap : Math.min(agentCap, model.outputTokens);
}

/** An answer that ends at its limit looks finished, so whoever reads it must be told. */
function cutWarning(context: RunContext, model: BoundModel, turn: ModelTurn): string[] {
  if (turn.finish_reason !== "length") return [];
  const cap = outputCap(context, model) ?? model.outputTokens;
  const limit = cap === null ? "" : ` (output limit: ${cap} tokens)`;
  return [`the answer was cut before its end and may be incomplete${limit}`];
}

/** Held: what follows, its calls or the end of the run, becomes durable with it. */
function commitTurn(
  context: RunContext,
  model: BoundModel,
  attemptId: AttemptId,
  { turn, warnings }: { turn: ModelTurn; warnings: string[] },
): number {
  const calls = turn.content.filter((part) => part.type === "tool_call").length;
  if (calls > MAX_CALLS_PER_TURN) {
    throw new ModelError(
      modelFailure(
        "invalid_response",
        `the model asked for ${calls} tool calls in one turn; at most ${MAX_CALLS_PER_TURN} run`,
        false,
      ),
    );
  }
  const turnSeq = context.view.modelTurnSeq + 1;
  context.log.hold([
    context.draft({
      type: "model_turn_committed",
      attempt_id: attemptId,
      model_turn_seq: turnSeq,
      resolved_model: model.selection,
      input_through_seq: context.view.inputThroughSeq,
      turn,
      warnings: [...cutWarning(context, model, turn), ...warnings]
        .slice(0, 256)
        .map((warning) => safeText(warning, 1024)),
    }),
    context.draft({
      type: "model_usage_recorded",
      model_turn_seq: turnSeq,
      agent_id: context.run.agent.agent,
      resolved_model: model.selection,
      usage: turn.usage,
      estimated_cost_pico_usd: stampedCost(model, turn.usage),
    }),
  ]);
  context.position.retries = 0;
  context.watch.committed(turn.usage);
  return turnSeq;
}

function modelFailure(
  kind: ModelErrorSummary["kind"],
  message: string,
  retryable: boolean,
): ModelErrorSummary {
  return {
    kind,
    message,
    retryable,
    stage: "stream_finalize",
    http_status: null,
    bytes_received: null,
    vendor_code: null,
    request_id: null,
    retry_after_ms: null,
  };
}
