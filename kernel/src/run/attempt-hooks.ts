import {
  type AttemptId,
  CookieError,
  type HookName,
  type HookRequest,
  type ModelTurn,
} from "@cookie-agent/sdk/protocol";
import type { BoundModel, ModelRequest, Sampling } from "../model/bound-model.ts";
import type { HookChain, HookOutcome, HookStep } from "../plugin/hook-chain.ts";
import type { HookSite } from "../plugin/hook-site.ts";
import { siteOf } from "../tool/dispatch-stages.ts";
import {
  callIds,
  fromHookMessages,
  fromHookParts,
  toHookMessages,
  toHookParts,
} from "./hook-messages.ts";
import type { RunContext } from "./run-context.ts";

const BEFORE_REQUEST: readonly HookName[] = [
  "model_before_request",
  "provider_before_headers",
  "provider_before_request",
];
/** Of all headers that plugins see and set. */
const MAX_HEADERS_BYTES = 64 * 1024;

export interface Attempted {
  readonly context: RunContext;
  readonly model: BoundModel;
  readonly attemptId: AttemptId;
  /** More calls than this in one turn do not run. */
  readonly maxCalls: number;
}

/** The plugins that look at one attempt; null when there are none. */
export function attemptHooks(attempted: Attempted, signal: AbortSignal): AttemptHooks | null {
  const { hooks } = attempted.context.stages;
  if (hooks?.has(...BEFORE_REQUEST, "provider_after_response", "message_end") !== true) return null;
  return new AttemptHooks(hooks, attempted, signal);
}

/** Each step rejects with `operation_blocked` when a required plugin fails (E-204), with `cancelled` on an abort. */
export class AttemptHooks {
  readonly #hooks: HookChain;
  readonly #attempted: Attempted;
  readonly #site: HookSite;
  readonly #signal: AbortSignal;

  constructor(hooks: HookChain, attempted: Attempted, signal: AbortSignal) {
    this.#hooks = hooks;
    this.#attempted = attempted;
    this.#site = siteOf(attempted.context.callContext, null);
    this.#signal = signal;
  }

  /** Whether somebody looks at the request before it goes out. */
  get changesRequest(): boolean {
    return this.#hooks.has(...BEFORE_REQUEST);
  }

  /** The request as the plugins leave it (E-161). */
  async beforeRequest(built: ModelRequest): Promise<ModelRequest> {
    const sampling = this.#attempted.model.samplingFor(built.maxOutputTokens);
    const messages = await this.#changeMessages({ ...built, sampling });
    const headers = await this.#changeHeaders(messages);
    return this.#watchResponse(await this.#changePayload(headers));
  }

  /** The turn as it is committed; the same object when nobody changed it. */
  async messageEnd(turn: ModelTurn): Promise<ModelTurn> {
    if (!this.#hooks.has("message_end")) return turn;
    const { context, attemptId, maxCalls } = this.#attempted;
    const outcome = await this.#hooks.run(
      "message_end",
      this.#site,
      {
        state: turn,
        facts: ({ content }) => ({
          attempt_id: attemptId,
          role: "assistant" as const,
          content: toHookParts(content),
        }),
        take: (before, { content }) => {
          if (content === undefined) return { kind: "go", state: before };
          const ids = callIds(content);
          const { usedCallIds } = context.view.history;
          if (new Set(ids).size !== ids.length || ids.some((id) => usedCallIds.has(id))) {
            return { kind: "invalid", problem: "a call id is used twice" };
          }
          if (ids.length > maxCalls) {
            return { kind: "invalid", problem: `more than ${maxCalls} calls in one turn` };
          }
          return {
            kind: "go",
            state: { ...before, content: fromHookParts(content, before.content) },
          };
        },
      },
      this.#signal,
    );
    return passed(outcome);
  }

  async #changeMessages(request: ModelRequest): Promise<ModelRequest> {
    if (!this.#hooks.has("model_before_request")) return request;
    const { model, attemptId } = this.#attempted;
    const outcome = await this.#hooks.run(
      "model_before_request",
      this.#site,
      {
        state: request,
        facts: (current) => ({
          attempt_id: attemptId,
          messages: toHookMessages(current),
          model: model.selection,
          params: paramsOf(current),
        }),
        take: (current, { messages, params_adjustments: adjusted }) =>
          this.#replace(current, messages, adjusted ?? {}),
      },
      this.#signal,
    );
    return passed(outcome);
  }

  async #changeHeaders(request: ModelRequest): Promise<ModelRequest> {
    if (!this.#hooks.has("provider_before_headers")) return request;
    const { headers } = this.#attempted.model;
    const { attemptId } = this.#attempted;
    const outcome = await this.#hooks.run(
      "provider_before_headers",
      this.#site,
      {
        state: {
          shown: headers?.shown ?? {},
          set: new Map<string, string>(),
          removed: new Set<string>(),
        },
        facts: ({ shown }) => ({ attempt_id: attemptId, headers: { ...shown } }),
        take: (before, { set = {}, delete: gone = [] }) => {
          const entries = Object.entries(set);
          if (entries.length === 0 && gone.length === 0) return { kind: "go", state: before };
          if (headers === null) {
            const problem = "the model is not asked over HTTP";
            return { kind: "invalid", problem, diagnostic: "unsupported_capability" };
          }
          for (const [name, value] of [...entries, ...gone.map((each) => [each, ""] as const)]) {
            const problem = headers.problemOf(name, value);
            if (problem !== undefined) {
              return {
                kind: "invalid",
                problem: `the header ${name} cannot be changed: ${problem}`,
              };
            }
          }
          const shown = new Map(Object.entries(before.shown));
          const next = { set: new Map(before.set), removed: new Set(before.removed) };
          for (const name of gone.map((each) => each.toLowerCase())) {
            shown.delete(name);
            next.set.delete(name);
            next.removed.add(name);
          }
          for (const [name, value] of entries) {
            shown.set(name.toLowerCase(), value);
            next.set.set(name.toLowerCase(), value);
            next.removed.delete(name.toLowerCase());
          }
          if (Buffer.byteLength(JSON.stringify([...shown])) > MAX_HEADERS_BYTES) {
            return { kind: "invalid", problem: `the headers exceed ${MAX_HEADERS_BYTES} bytes` };
          }
          return { kind: "go", state: { shown: Object.fromEntries(shown), ...next } };
        },
      },
      this.#signal,
    );
    const { set, removed } = passed(outcome);
    return { ...request, headers: { set, removed } };
  }

  async #changePayload(request: ModelRequest): Promise<ModelRequest> {
    if (!this.#hooks.has("provider_before_request")) return request;
    const { model, attemptId } = this.#attempted;
    const wireModel = model.resolved.wire_model_id;
    const published = new Set(request.tools.map(({ name }) => name));
    const outcome = await this.#hooks.run(
      "provider_before_request",
      this.#site,
      {
        state: request,
        facts: (current) => ({ attempt_id: attemptId, payload: payloadOf(current, wireModel) }),
        take: (current, { payload }) => {
          if (payload === undefined) return { kind: "go", state: current };
          if (payload.model !== wireModel) {
            return { kind: "invalid", problem: "the model cannot be changed here" };
          }
          const names = payload.tools.map(({ name }) => name);
          if (new Set(names).size !== names.length || names.some((name) => !published.has(name))) {
            return { kind: "invalid", problem: "a tool that the run does not have was added" };
          }
          const { messages, tools, max_tokens, temperature, top_p } = payload;
          const params = { max_tokens, temperature, top_p };
          return this.#replace({ ...current, tools }, messages, params);
        },
      },
      this.#signal,
    );
    return passed(outcome);
  }

  #watchResponse(request: ModelRequest): ModelRequest {
    if (!this.#hooks.has("provider_after_response")) return request;
    const { attemptId } = this.#attempted;
    return {
      ...request,
      onResponse: async (status, headers) => {
        await this.#hooks.run(
          "provider_after_response",
          this.#site,
          {
            state: null,
            facts: () => ({ attempt_id: attemptId, status, headers: { ...headers } }),
            take: (state) => ({ kind: "go", state }),
          },
          this.#signal,
        );
      },
    };
  }

  #replace(
    current: ModelRequest,
    messages: HookRequest["messages"] | undefined,
    params: Params,
  ): HookStep<ModelRequest> {
    const { model } = this.#attempted;
    const conversation =
      messages === undefined ? current : fromHookMessages(messages, current, model);
    if ("problem" in conversation) return { kind: "invalid", problem: conversation.problem };
    const problem = paramsProblem(params, current.sampling ?? {}, model);
    if (problem !== undefined) return { kind: "invalid", problem };
    const { system, history } = conversation;
    const sampling = adjust(current.sampling ?? {}, params);
    return { kind: "go", state: { ...current, system, history, sampling } };
  }
}

interface Params {
  readonly max_tokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly top_p?: number | undefined;
}

function paramsProblem(
  params: Params,
  { maxOutputTokens, temperature, topP }: Sampling,
  model: BoundModel,
): string | undefined {
  const cap = maxOutputTokens ?? model.outputTokens ?? Number.POSITIVE_INFINITY;
  if ((params.max_tokens ?? 0) > cap) return `max_tokens exceeds ${cap}`;
  if ((params.temperature ?? temperature) !== temperature && !model.takes.temperature) {
    return "the model takes no temperature";
  }
  if ((params.top_p ?? topP) !== topP && !model.takes.topP) return "the model takes no top_p";
  return undefined;
}

function adjust(before: Sampling, { max_tokens, temperature, top_p }: Params): Sampling {
  return {
    ...before,
    ...(max_tokens !== undefined && { maxOutputTokens: max_tokens }),
    ...(temperature !== undefined && { temperature }),
    ...(top_p !== undefined && { topP: top_p }),
  };
}

function paramsOf({ sampling: { maxOutputTokens, temperature, topP } = {} }: ModelRequest) {
  return {
    ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
  };
}

function payloadOf(request: ModelRequest, model: string): HookRequest {
  return {
    model,
    messages: toHookMessages(request),
    tools: request.tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    })),
    ...paramsOf(request),
  };
}

/** Nobody can block an attempt but by failing where it is required. */
function passed<S>(outcome: HookOutcome<S>): S {
  if (outcome.kind === "passed") return outcome.state;
  throw new CookieError("operation_blocked", outcome.reason);
}
