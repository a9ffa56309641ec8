import {
  CookieError,
  type ModelEntry,
  type ModelSelection,
  type Revision,
} from "@cookie-agent/sdk/protocol";
import type { Config, PromptCachingConfig } from "../config/config.ts";
import type { ProviderConfig } from "../config/provider-config.ts";
import { revisionOf } from "../support/digest.ts";
import { bindOfflineModel, OFFLINE_MODEL } from "./adaptors/offline.ts";
import { type BindingServices, bindModel } from "./bind-model.ts";
import type { BoundModel } from "./bound-model.ts";
import { type CompiledModel, compileProvider } from "./compile-provider.ts";
import { DEFAULT_TIMEOUTS, type ExchangeTimeouts } from "./http-exchange.ts";
import { PromptMapper } from "./map-prompt.ts";
import { DEFAULT_PROMPT_CACHING } from "./mark-cache.ts";
import { compilePrices } from "./price-usage.ts";

/** Every model that can be selected, at one moment of the configuration. */
export interface ModelRuntime {
  /** Sorted by key, the offline model last. */
  list(): ModelEntry[];
  /** Equal definitions give an equal revision; no secret enters it. */
  readonly revision: Revision;
  /** The first by key with its default variant; never the offline model. */
  firstAvailable(): ModelSelection | undefined;
  /** Freezes a model for a run; undefined when there is no such model or variant. */
  bind(selection: ModelSelection): Promise<BoundModel | undefined>;
  has(key: string, variant: string | null): boolean;
  /** Null asks for the model's default variant, `base` for none. */
  resolveVariant(model: string, variant: string | null | "base"): ModelSelection | undefined;
}

export interface ModelRuntimeOptions {
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly pricing: Config["pricing"];
  /** Goes into the user agent. */
  readonly engineVersion: string;
  readonly promptCaching?: PromptCachingConfig;
  readonly timeouts?: ExchangeTimeouts;
}

/** Compiles every authored provider; a breach of its rules rejects with the code of that rule (C 5.5). */
export function createModelRuntime(options: ModelRuntimeOptions): ModelRuntime {
  const models = compileAll(options.providers);
  const services = new Map<string, BindingServices>();

  const servicesOf = (model: CompiledModel): BindingServices => {
    const known = services.get(model.key);
    if (known !== undefined) return known;
    const rates = options.pricing.models.get(model.key);
    const made: BindingServices = {
      mapper: new PromptMapper({ modelKey: model.key, ...model.adaptor }),
      prices: rates === undefined ? null : compilePrices(rates),
      promptCaching: options.promptCaching ?? DEFAULT_PROMPT_CACHING,
      engineVersion: options.engineVersion,
      timeouts: options.timeouts ?? DEFAULT_TIMEOUTS,
    };
    services.set(model.key, made);
    return made;
  };

  const resolveVariant = (key: string, variant: string | null): ModelSelection | undefined => {
    if (key === OFFLINE_MODEL) {
      return variant === null || variant === "base" ? { model: key, variant: null } : undefined;
    }
    const model = models.get(key);
    if (model === undefined) return undefined;
    if (variant === null) return { model: key, variant: model.defaultVariant };
    if (variant === "base") return { model: key, variant: null };
    return model.variants.has(variant) ? { model: key, variant } : undefined;
  };

  return {
    revision: revisionOf(
      "cookie-agent/model-runtime/v1",
      [...models.values()].map((model) => model.fingerprint),
    ),
    list: () => [...[...models.values()].map(toEntry), OFFLINE_ENTRY],
    firstAvailable: () => {
      const [first] = models.values();
      return first && { model: first.key, variant: first.defaultVariant };
    },
    bind: async ({ model: key, variant }) => {
      if (key === OFFLINE_MODEL) return variant === null ? bindOfflineModel() : undefined;
      const model = models.get(key);
      const behaviour = variant === null ? model?.base : model?.variants.get(variant);
      if (model === undefined || behaviour === undefined) return undefined;
      return bindModel(model, behaviour, servicesOf(model));
    },
    has: (key, variant) => resolveVariant(key, variant ?? "base") !== undefined,
    resolveVariant,
  };
}

/** Sorted by key, so that the first available model does not depend on the order of a file. */
function compileAll(
  providers: ReadonlyMap<string, ProviderConfig>,
): ReadonlyMap<string, CompiledModel> {
  const models: CompiledModel[] = [];
  for (const provider of providers.values()) {
    if (provider.source === "custom") models.push(...compileProvider(provider));
  }
  models.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
  const byKey = new Map<string, CompiledModel>();
  for (const model of models) {
    if (byKey.has(model.key)) {
      throw new CookieError("runtime_compile_failed", `the model key ${model.key} exists twice`);
    }
    byKey.set(model.key, model);
  }
  return byKey;
}

const OFFLINE_ENTRY: ModelEntry = {
  key: OFFLINE_MODEL,
  display_name: "Offline script",
  available: true,
  offline: true,
  context_tokens: null,
  output_tokens: null,
  tool_calling: true,
  variants: [],
  default_variant: null,
};

function toEntry(model: CompiledModel): ModelEntry {
  return {
    key: model.key,
    display_name: model.displayName,
    available: true,
    offline: false,
    context_tokens: model.capabilities.contextTokens,
    output_tokens: model.capabilities.outputTokens,
    tool_calling: model.capabilities.toolCalling,
    variants: [...model.variants.keys()],
    default_variant: model.defaultVariant,
  };
}
