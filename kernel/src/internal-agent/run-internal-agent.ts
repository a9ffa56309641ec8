import type {
  Digest,
  EventPayload,
  InternalAgentFailure,
  InternalAgentInvocationId,
  InternalAgentKind,
  InternalAgentRunId,
  ModelTurn,
  RunId,
} from "@cookie-agent/sdk/protocol";
import type { AgentDocument } from "../config/agent-document.ts";
import type { ModelRetryConfig } from "../config/config.ts";
import { internalAgentOf } from "../config/internal-agents.ts";
import type { RunLog } from "../event/run-log.ts";
import type { BoundModel, HistoryMessage, ModelRequest } from "../model/bound-model.ts";
import type { ModelRuntime } from "../model/model-runtime.ts";
import { stampedCost } from "../model/price-usage.ts";
import { createId } from "../support/create-id.ts";
import { keptDelay } from "../support/deadline.ts";
import { sha256Hex } from "../support/digest.ts";
import { safeText } from "../support/safe-text.ts";
import { askCandidate, type CandidateAnswer, fail } from "./ask-candidate.ts";
import { bindCandidates } from "./bind-candidates.ts";

/** What internal agents are made from. */
export interface InternalAgentSources {
  readonly agents: ReadonlyMap<string, AgentDocument>;
  readonly models: Pick<ModelRuntime, "bind" | "resolveVariant">;
}

/** On whose behalf an internal agent is asked. */
export interface InternalAgentOwner {
  /** Null: outside any run. */
  readonly runId: RunId | null;
  /** Flushed before a model is asked; what follows is held, and becomes durable with what the caller makes of it. */
  readonly log: Pick<RunLog, "hold" | "flush">;
  readonly sources: InternalAgentSources;
  /** What `${parent_model}` stands for: the owner's models from its place in the chain on. */
  readonly parentModels: readonly BoundModel[];
  readonly retry: ModelRetryConfig;
  /** Asked before each request to a model: why none may be sent, or null (S 5.11). */
  forbids?(): string | null;
}

/** What an internal agent is asked; its document says by whom and within which limits. */
export interface InternalAgentCall {
  readonly kind: InternalAgentKind;
  /** What the log says of the input, which it does not hold. */
  readonly input: { readonly summary: string; readonly digest: Digest };
  /** What one model is asked; `prompt` is the agent's own. */
  request(
    prompt: string,
    model: BoundModel,
  ): Omit<ModelRequest, "maxOutputTokens"> | Promise<Omit<ModelRequest, "maxOutputTokens">>;
  /** UTF-8 bytes that the answer may have; absent: four for each token it may have. */
  readonly maxOutputBytes?: number;
  /** Whether a model that the input is too long for is not even asked; the input is then text alone. */
  readonly judgesInput: boolean;
}

export type InternalAgentOutcome = { readonly invocationId: InternalAgentInvocationId } & (
  | {
      readonly kind: "completed";
      readonly internalRunId: InternalAgentRunId;
      readonly text: string;
      readonly turn: ModelTurn;
      readonly model: BoundModel;
    }
  | { readonly kind: "failed"; readonly failure: InternalAgentFailure }
  | { readonly kind: "cancelled" }
);

/** Taken where the model's context is not known, in tokens. */
const UNKNOWN_CONTEXT_TOKENS = 16_384;
const BYTES_PER_TOKEN = 4;

/**
 * Asks an internal agent once: its models in order, each with the retries of a run, all within its timeout (S 11.1).
 * No tool runs and no plugin looks on. Every way it can end is a value; it rejects only when the log cannot be written.
 */
export async function runInternalAgent(
  owner: InternalAgentOwner,
  call: InternalAgentCall,
  signal: AbortSignal,
): Promise<InternalAgentOutcome> {
  const document = internalAgentOf(owner.sources.agents, call.kind);
  const candidates = await bindCandidates(document, owner.parentModels, owner.sources.models);
  const record = new InternalAgentRecord(owner, call, document);
  record.start(candidates[0]);
  if (candidates.length === 0) {
    return record.failed(fail("agent_unavailable", `no model of agent ${document.id} can run`));
  }
  await owner.log.flush();

  const clock = new AbortController();
  const timer = setTimeout(() => clock.abort(), keptDelay(document.timeoutMs));
  const stop = AbortSignal.any([signal, clock.signal]);
  try {
    for (const [index, model] of candidates.entries()) {
      const answer = await askOne({ owner, call, document, model }, stop);
      if (answer.usage !== null) record.usage(model, answer.usage);
      if (answer.kind === "answered") return record.completed(answer, model);
      if (signal.aborted) return record.cancelled();
      if (clock.signal.aborted) {
        const message = `agent ${document.id} did not answer within ${document.timeoutMs} ms`;
        return record.failed(fail("timeout", message));
      }
      const next = candidates[index + 1];
      if (next === undefined || answer.isFinal) return record.failed(answer.failure);
      record.fallback(model, next, answer);
    }
  } finally {
    clearTimeout(timer);
  }
  return record.failed(fail("agent_unavailable", `no model of agent ${document.id} can run`));
}

async function askOne(
  asked: {
    readonly owner: InternalAgentOwner;
    readonly call: InternalAgentCall;
    readonly document: AgentDocument;
    readonly model: BoundModel;
  },
  signal: AbortSignal,
): Promise<CandidateAnswer> {
  const { owner, call, document, model } = asked;
  const maxOutputTokens = Math.min(document.maxOutputTokens, model.outputTokens ?? Infinity);
  const failed = { kind: "failed", attempts: 1, usage: null, isFinal: false } as const;
  let request: ModelRequest;
  try {
    request = { ...(await call.request(document.prompt, model)), maxOutputTokens };
  } catch (error) {
    const message = error instanceof Error ? error.message : "the request could not be made";
    return { ...failed, failure: fail("model_failure", message) };
  }
  if (call.judgesInput && inputTokens(request) > inputLimit(model, maxOutputTokens)) {
    const message = `the input is too long for ${model.selection.model}`;
    return { ...failed, failure: fail("input_too_large", message) };
  }
  const maxOutputBytes = call.maxOutputBytes ?? BYTES_PER_TOKEN * maxOutputTokens;
  const answer = await askCandidate(
    {
      model,
      request,
      retry: owner.retry,
      maxOutputBytes,
      forbids: () => owner.forbids?.() ?? null,
    },
    signal,
  );
  // A model whose own count of a text is higher is too small; who judges no input must hear of that at once.
  const isTooSmall =
    answer.kind === "failed" && answer.failure.model_error?.kind === "context_length";
  return isTooSmall && call.judgesInput ? { ...answer, isFinal: false } : answer;
}

function inputLimit({ contextTokens }: BoundModel, reserve: number): number {
  if (contextTokens === null) return UNKNOWN_CONTEXT_TOKENS;
  return Math.max(1, contextTokens - reserve);
}

function inputTokens({ system, history }: ModelRequest): number {
  const textOf = (message: HistoryMessage) =>
    message.role === "user" ? message.text : JSON.stringify(message);
  const texts = [system, ...history.map(textOf)];
  const byteLength = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return Math.ceil(byteLength / BYTES_PER_TOKEN);
}

/** What the log says of one internal agent, from its start to its one terminal event. */
class InternalAgentRecord {
  readonly #owner: InternalAgentOwner;
  readonly #call: InternalAgentCall;
  readonly #document: AgentDocument;
  readonly #ids = {
    invocation_id: createId<InternalAgentInvocationId>(),
    internal_run_id: createId<InternalAgentRunId>(),
  };

  constructor(owner: InternalAgentOwner, call: InternalAgentCall, document: AgentDocument) {
    this.#owner = owner;
    this.#call = call;
    this.#document = document;
  }

  start(first: BoundModel | undefined): void {
    const { kind, input } = this.#call;
    this.#hold({
      type: "internal_agent_started",
      ...this.#ids,
      kind,
      backend:
        first === undefined
          ? { type: "builtin", name: "unavailable", revision: "1" }
          : { type: "model", resolved_model: first.selection },
      call: {
        name: this.#document.id,
        input_summary: safeText(input.summary, 1024),
        input_digest: input.digest,
      },
    });
  }

  usage(model: BoundModel, usage: ModelTurn["usage"]): void {
    this.#hold({
      type: "internal_agent_usage_recorded",
      internal_run_id: this.#ids.internal_run_id,
      kind: this.#call.kind,
      agent_id: this.#document.id,
      resolved_model: model.selection,
      usage,
      estimated_cost_pico_usd: stampedCost(model, usage),
    });
  }

  fallback(
    from: BoundModel,
    to: BoundModel,
    { failure, attempts }: { failure: InternalAgentFailure; attempts: number },
  ): void {
    this.#hold({
      type: "internal_agent_fallback",
      ...this.#ids,
      from: from.selection,
      to: to.selection,
      failure,
      attempts,
    });
  }

  completed(
    { text, turn }: { text: string; turn: ModelTurn },
    model: BoundModel,
  ): InternalAgentOutcome {
    const result = { output_summary: safeText(text, 256), output_digest: sha256Hex(text) };
    this.#hold({ type: "internal_agent_completed", ...this.#ids, result });
    const { invocation_id: invocationId, internal_run_id: internalRunId } = this.#ids;
    return { kind: "completed", invocationId, internalRunId, text, turn, model };
  }

  failed(failure: InternalAgentFailure): InternalAgentOutcome {
    this.#hold({ type: "internal_agent_failed", ...this.#ids, failure });
    return { kind: "failed", invocationId: this.#ids.invocation_id, failure };
  }

  cancelled(): InternalAgentOutcome {
    const reason = "its owner stopped";
    this.#hold({ type: "internal_agent_cancelled", ...this.#ids, reason });
    return { kind: "cancelled", invocationId: this.#ids.invocation_id };
  }

  #hold(payload: EventPayload): void {
    this.#owner.log.hold([{ payload, runId: this.#owner.runId }]);
  }
}
