import type {
  CustomModel,
  CustomProviderConfig,
  ModelCapabilities,
} from "../../../../kernel/src/config/provider-config.ts";
import { Secret } from "../../../../kernel/src/config/secret.ts";
import type {
  BoundModel,
  HistoryMessage,
  ModelRequest,
  ModelStreamPart,
} from "../../../../kernel/src/model/bound-model.ts";
import { ModelError } from "../../../../kernel/src/model/model-error.ts";
import {
  createModelRuntime,
  type ModelRuntimeOptions,
} from "../../../../kernel/src/model/model-runtime.ts";

export const CAPABILITIES: ModelCapabilities = {
  input: ["text"],
  contextTokens: 100_000,
  outputTokens: 8_000,
  toolCalling: true,
  parallelToolCalls: true,
  structuredOutput: false,
  reasoning: true,
  temperature: true,
  topP: true,
  seed: true,
  media: new Map(),
};

export function customModel(changes: Partial<CustomModel> = {}): CustomModel {
  return {
    enabled: true,
    displayName: "Model",
    wireModelId: "wire-model",
    capabilities: CAPABILITIES,
    defaults: {},
    options: {},
    variants: new Map(),
    defaultVariant: null,
    ...changes,
  };
}

export const ADAPTORS = [
  "openai-compatible",
  "openai-chat",
  "openai-responses",
  "anthropic",
  "anthropic-compatible",
] as const;
export type Adaptor = (typeof ADAPTORS)[number];

export function keyAuth(adaptor: string, key = "secret-key-value") {
  const method = adaptor.startsWith("anthropic") ? "anthropic-api-key-v1" : "bearer-api-key-v1";
  return { method, values: { api_key: Secret.of(key) }, parameters: {} };
}

export function customProvider(
  changes: Partial<CustomProviderConfig> & { model?: CustomModel } = {},
): CustomProviderConfig {
  const { model = customModel(), ...rest } = changes;
  const adaptor = rest.adaptor ?? "openai-compatible";
  return {
    source: "custom",
    id: "custom.test",
    endpoint: "http://127.0.0.1:1/v1",
    adaptor,
    setup: {},
    auth: keyAuth(adaptor),
    headers: {},
    models: new Map([["m", model]]),
    ...rest,
  };
}

export function runtimeOf(
  provider: CustomProviderConfig,
  options: Partial<ModelRuntimeOptions> = {},
) {
  return createModelRuntime({
    providers: new Map([[provider.id, provider]]),
    pricing: { models: new Map() },
    engineVersion: "1.2.3",
    ...options,
  });
}

export async function bind(
  provider: CustomProviderConfig,
  options: Partial<ModelRuntimeOptions> & { variant?: string } = {},
): Promise<BoundModel> {
  const { variant = null, ...rest } = options;
  const bound = await runtimeOf(provider, rest).bind({ model: `${provider.id}/m`, variant });
  if (bound === undefined) throw new Error("the model is not in the runtime");
  return bound;
}

export const READ_TOOL = {
  name: "read",
  description: "Reads a file.",
  parameters: { type: "object", properties: { path: { type: "string" } } },
};

export function request(changes: Partial<ModelRequest> = {}): ModelRequest {
  return {
    system: "You are a test.",
    history: [{ role: "user", text: "go" }],
    tools: [READ_TOOL],
    maxOutputTokens: null,
    ...changes,
  };
}

export function user(text: string): HistoryMessage {
  return { role: "user", text };
}

export async function collect(
  bound: BoundModel,
  asked: ModelRequest = request(),
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [];
  for await (const part of bound.stream(asked, signal)) parts.push(part);
  return parts;
}

export async function finishOf(bound: BoundModel, asked?: ModelRequest) {
  const last = (await collect(bound, asked)).at(-1);
  if (last?.type !== "finish") throw new Error("the stream did not finish");
  return last;
}

/** The summary of the failure that the response must have. */
export async function failureOf(bound: BoundModel, signal?: AbortSignal) {
  try {
    await collect(bound, request(), signal);
  } catch (error) {
    if (error instanceof ModelError) return error.summary;
    throw error;
  }
  throw new Error("the response did not fail");
}
