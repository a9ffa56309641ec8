import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolChoice,
} from "@ai-sdk/provider";
import { CookieError, type ModelSelection, type Usage } from "@cookie-agent/sdk/protocol";
import type { PromptCachingConfig } from "../config/config.ts";
import type { ToolChoice } from "../config/provider-config.ts";
import { sha256Hex } from "../support/digest.ts";
import type { AdaptorFacts, AdaptorModule, OpenedModel } from "./adaptors/adaptor.ts";
import type {
  BoundModel,
  ModelRequest,
  ModelStreamPart,
  Sampling,
  ToolSpec,
} from "./bound-model.ts";
import {
  type FailureContext,
  plainBodyError,
  streamEventError,
  toModelError,
} from "./classify-error.ts";
import type { CompiledAuth, CompiledModel } from "./compile-provider.ts";
import { type ExchangeTimeouts, HttpExchange, readPlainBody } from "./http-exchange.ts";
import type { PromptMapper } from "./map-prompt.ts";
import { TurnAssembly } from "./map-stream.ts";
import { markPrompt, markTools } from "./mark-cache.ts";
import { mediaTargetOf } from "./media-target-of.ts";
import type { ModelBehaviour } from "./model-behaviour.ts";
import { modelError } from "./model-error.ts";
import { type Prices, priceUsage } from "./price-usage.ts";
import { requestHeaders, shownResponseHeaders } from "./request-headers.ts";
import { RequestPrefix } from "./request-prefix.ts";

/** How long a finished response may take to close. */
const DRAIN_MS = 250;
/** A wire that demands a limit gets this where nobody named one. */
const UNSTATED_OUTPUT_TOKENS = 16_384;

export interface BindingServices {
  readonly mapper: PromptMapper;
  readonly prices: Prices | null;
  readonly promptCaching: PromptCachingConfig;
  readonly engineVersion: string;
  readonly timeouts: ExchangeTimeouts;
}

/** Freezes a model and one behaviour of it; starts loading its provider package at once. */
export function bindModel(
  model: CompiledModel,
  behaviour: ModelBehaviour,
  services: BindingServices,
): BoundModel {
  const selection: ModelSelection = { model: model.key, variant: behaviour.variant };
  const opening = openModel(model, behaviour, services);
  const prefix = model.adaptor.mapsMessagesAlone ? new RequestPrefix() : null;
  // A package that does not load is reported by the request that needs it.
  opening.catch(() => undefined);
  return {
    selection,
    resolved: {
      selection,
      adapter_id: model.adaptor.id,
      wire_model_id: behaviour.wireModelId,
      endpoint_identity: model.endpoint,
      fingerprint: sha256Hex(`${model.fingerprint}\0${behaviour.variant ?? ""}`),
    },
    contextTokens: model.capabilities.contextTokens,
    outputTokens: model.capabilities.outputTokens,
    toolCalling: model.capabilities.toolCalling,
    media: mediaTargetOf(model),
    takes: {
      temperature: model.capabilities.temperature,
      topP: model.capabilities.topP,
    },
    headers: requestHeaders(model),
    samplingFor: (maxOutputTokens) => samplingOf(model, behaviour, maxOutputTokens),
    price: (usage: Usage) => (services.prices === null ? null : priceUsage(usage, services.prices)),
    stream: (request, signal) =>
      streamResponse({ model, behaviour, services, opening, prefix, request, signal }),
  };
}

type FetchEvents = (
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
) => Promise<Response>;

interface OpenedPackage {
  readonly adaptor: AdaptorModule;
  readonly opened: OpenedModel;
  /** What fetches for the request with this signal. */
  readonly routes: WeakMap<AbortSignal, FetchEvents>;
}

/** Opened once for all requests, because packages build costly schemas; the signal tells which one is fetching. */
async function openModel(
  model: CompiledModel,
  behaviour: ModelBehaviour,
  services: BindingServices,
): Promise<OpenedPackage> {
  const { auth } = model;
  const adaptor = await model.adaptor.load();
  const routes = new WeakMap<AbortSignal, FetchEvents>();
  const opened = adaptor.openModel({
    endpoint: model.endpoint,
    behaviour,
    capabilities: model.capabilities,
    apiKey: auth.kind === "package_key" ? auth.key : "",
    headers: { ...model.headers, "user-agent": `cookie-agent/${services.engineVersion}` },
    fetch: (input, init) => {
      const route = init?.signal ? routes.get(init.signal) : undefined;
      if (route === undefined) throw new CookieError("engine", "a request lost its signal");
      return route(input, init);
    },
  });
  return { adaptor, opened, routes };
}

interface Attempt {
  readonly model: CompiledModel;
  readonly behaviour: ModelBehaviour;
  readonly services: BindingServices;
  readonly opening: Promise<OpenedPackage>;
  readonly prefix: RequestPrefix | null;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
}

async function* streamResponse(attempt: Attempt): AsyncGenerator<ModelStreamPart> {
  const { model, behaviour, services, request, signal } = attempt;
  const { auth } = model;
  const options = buildCallOptions(attempt);
  const cut = request.isAside ? undefined : attempt.prefix?.cut(options.prompt);
  const exchange = new HttpExchange({
    timeouts: services.timeouts,
    signal,
    authorize: (headers) => {
      for (const [name, value] of request.headers?.set ?? []) headers.set(name, value);
      for (const name of request.headers?.removed ?? []) headers.delete(name);
      authorize(headers, auth);
    },
    ...(request.onResponse && {
      onResponse: (status, headers) => request.onResponse?.(status, shownResponseHeaders(headers)),
    }),
    ...(behaviour.options.apiPath !== undefined && {
      url: model.endpoint + behaviour.options.apiPath,
    }),
    ...(cut !== undefined && { complete: cut.complete }),
  });
  const context: FailureContext = {
    provider: model.providerId,
    exchange,
    signal,
    secrets: auth.kind === "none" ? [] : [auth.key],
  };
  try {
    signal.throwIfAborted();
    const { adaptor, opened, routes } = await attempt.opening;
    routes.set(exchange.signal, (input, init) => fetchEvents(exchange, context, input, init));
    options.abortSignal = exchange.signal;
    if (cut !== undefined) options.prompt = cut.prompt;
    options.providerOptions = opened.providerOptions(options.tools !== undefined);
    options.includeRawChunks = adaptor.readWireCallIds !== undefined;
    const { stream } = await opened.model.doStream(options);
    const assembly = new TurnAssembly({
      usedCallIds: request.usedCallIds ?? new Set(),
      raise: (event) => {
        throw streamEventError(event, context);
      },
      ...(adaptor.readWireCallIds !== undefined && { readWireCallIds: adaptor.readWireCallIds }),
    });
    yield* readParts(stream.getReader(), assembly, signal);
  } catch (error) {
    throw toModelError(error, context);
  } finally {
    exchange.close();
  }
}

async function* readParts(
  reader: ReadableStreamDefaultReader<LanguageModelV3StreamPart>,
  assembly: TurnAssembly,
  signal: AbortSignal,
): AsyncGenerator<ModelStreamPart> {
  while (!assembly.finished) {
    const { done, value } = await reader.read();
    signal.throwIfAborted();
    if (done) {
      throw modelError({
        kind: "unexpected_eof",
        stage: "stream_finalize",
        message: "the response ended before it was complete",
      });
    }
    yield* assembly.accept(value);
  }
  await drain(reader);
}

/** A body read to its end gives its connection back for the next request. */
async function drain(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MS);
  });
  const rest = (async () => {
    while (!(await reader.read()).done);
  })();
  await Promise.race([rest.catch(() => undefined), patience]);
  clearTimeout(timer);
}

/** Where an event stream was asked for, a page or a JSON object is an error of some kind. */
async function fetchEvents(
  exchange: HttpExchange,
  context: FailureContext,
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
): Promise<Response> {
  const response = await exchange.fetch(input, init);
  const type = response.headers.get("content-type") ?? "";
  if (response.ok && /^(?:application\/(?:problem\+)?json|text\/html)\b/i.test(type)) {
    throw plainBodyError(await readPlainBody(response), context);
  }
  return response;
}

function authorize(headers: Map<string, string>, auth: CompiledAuth): void {
  if (auth.kind === "package_key") return;
  // Some packages send an empty bearer token when they are given no key (C-149).
  headers.delete("authorization");
  if (auth.kind === "header") headers.set(auth.name.toLowerCase(), auth.key);
}

function buildCallOptions({
  model,
  behaviour,
  services,
  request,
}: Attempt): LanguageModelV3CallOptions {
  const { adaptor, capabilities } = model;
  const { defaults } = behaviour;
  const mapped = services.mapper.map(request.system, request.history, request.media);
  const { maxOutputTokens, temperature, topP } =
    request.sampling ?? samplingOf(model, behaviour, request.maxOutputTokens);
  const tools = capabilities.toolCalling ? request.tools.map((tool) => toTool(tool, adaptor)) : [];
  const toolChoice = toToolChoice(defaults.toolChoice);
  const marks = adaptor.promptCaching && services.promptCaching.enabled;
  return {
    prompt: marks ? markPrompt(mapped, services.promptCaching) : mapped,
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(defaults.seed !== undefined && { seed: defaults.seed }),
    ...(defaults.stop !== undefined && { stopSequences: [...defaults.stop] }),
    ...(tools.length > 0 && {
      tools:
        marks && toolChoice?.type !== "none" ? markTools(tools, services.promptCaching) : tools,
      ...(toolChoice !== undefined && { toolChoice }),
    }),
  };
}

function samplingOf(model: CompiledModel, behaviour: ModelBehaviour, cap: number | null): Sampling {
  const { temperature, topP } = behaviour.defaults;
  const maxOutputTokens = limitOutput(model, behaviour, cap);
  return {
    ...(maxOutputTokens !== null && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
  };
}

function toTool(tool: ToolSpec, adaptor: AdaptorFacts): LanguageModelV3FunctionTool {
  return {
    type: "function",
    name: tool.name,
    description: tool.description,
    inputSchema: tool.parameters,
    ...(adaptor.strictByDefault && { strict: false }),
  };
}

function toToolChoice(choice: ToolChoice | undefined): LanguageModelV3ToolChoice | undefined {
  if (choice === undefined) return undefined;
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.named };
}

/** The lowest of the cap, the default and the model's limit, less a thinking budget that is added to it (C-158). */
function limitOutput(
  { adaptor, capabilities }: CompiledModel,
  { defaults, reasoning }: ModelBehaviour,
  cap: number | null,
): number | null {
  const wanted = [cap ?? 0, defaults.maxOutputTokens ?? 0].filter((each) => each > 0);
  if (!adaptor.addsBudgetToOutput) {
    return wanted.length === 0 ? null : Math.min(...wanted, capabilities.outputTokens);
  }
  const budget = reasoning?.type === "budget_tokens" ? Math.max(0, reasoning.value) : 0;
  const limit = wanted.length === 0 ? UNSTATED_OUTPUT_TOKENS : Math.min(...wanted);
  return Math.max(1, Math.min(limit, capabilities.outputTokens - budget));
}
