import { CookieError } from "@cookie-agent/sdk/protocol";
import type {
  CustomModel,
  ModelCapabilities,
  ModelDefaults,
  ModelOptions,
  VariantDirective,
  VariantReasoning,
} from "../config/provider-config.ts";
import type { AdaptorFacts } from "./adaptors/adaptor.ts";

/** How a model is asked: the base behaviour, or that of one variant. */
export interface ModelBehaviour {
  /** Null: the base behaviour. */
  readonly variant: string | null;
  readonly wireModelId: string;
  readonly defaults: ModelDefaults;
  readonly options: ModelOptions;
  readonly reasoning: VariantReasoning | null;
}

/** Base and variants of one model; a variant inherits field by field, lists and reasoning as a whole (C-157). */
export function compileVariants(
  key: string,
  model: CustomModel,
  adaptor: AdaptorFacts,
): { base: ModelBehaviour; variants: ReadonlyMap<string, ModelBehaviour> } {
  const base: ModelBehaviour = {
    variant: null,
    wireModelId: model.wireModelId,
    defaults: model.defaults,
    options: model.options,
    reasoning: null,
  };
  const variants = new Map<string, ModelBehaviour>();
  for (const [id, directive] of [...model.variants].sort(byUtf8)) {
    applyDirective(key, id, directive, base, variants);
    const behaviour = variants.get(id);
    if (behaviour !== undefined) checkVariant(key, behaviour, model.capabilities, adaptor);
  }
  if (model.defaultVariant !== null && model.defaultVariant !== "base") {
    if (!variants.has(model.defaultVariant)) {
      throw new CookieError(
        "unknown_default_variant",
        `${key}: the default variant ${model.defaultVariant} does not exist; name one of ${listOf(variants.keys())}`,
      );
    }
  }
  return { base, variants };
}

function applyDirective(
  key: string,
  id: string,
  directive: VariantDirective,
  base: ModelBehaviour,
  variants: Map<string, ModelBehaviour>,
): void {
  const exists = variants.has(id);
  if (directive.operation === "add" && exists) {
    throw new CookieError(
      "variant_collision",
      `${key}: the variant ${id} exists already; use replace`,
    );
  }
  if (directive.operation !== "add" && !exists) {
    throw invalidVariant(key, id, `there is nothing to ${directive.operation}; use add`);
  }
  if (directive.operation === "disable") {
    variants.delete(id);
    return;
  }
  variants.set(id, {
    variant: id,
    wireModelId: directive.wireModelId ?? base.wireModelId,
    defaults: { ...base.defaults, ...directive.defaults },
    options: { ...base.options, ...directive.options },
    reasoning: directive.reasoning ?? base.reasoning,
  });
}

function checkVariant(
  key: string,
  { variant, defaults, reasoning }: ModelBehaviour,
  capabilities: ModelCapabilities,
  adaptor: AdaptorFacts,
): void {
  const id = variant ?? "base";
  const needs: readonly (readonly [unknown, boolean, string])[] = [
    [defaults.temperature, capabilities.temperature, "temperature"],
    [defaults.topP, capabilities.topP, "top_p"],
    [defaults.seed, capabilities.seed, "seed"],
    [defaults.toolChoice, capabilities.toolCalling, "tool_calling"],
    [reasoning ?? undefined, capabilities.reasoning, "reasoning"],
  ];
  for (const [value, able, capability] of needs) {
    if (value !== undefined && !able) throw invalidVariant(key, id, `it needs ${capability}`);
  }
  if ((defaults.maxOutputTokens ?? 0) > capabilities.outputTokens) {
    throw invalidVariant(key, id, `max_output_tokens exceeds ${capabilities.outputTokens}`);
  }
  if (reasoning === null) return;
  if (!adaptor.reasoningTypes.includes(reasoning.type)) {
    throw invalidVariant(key, id, `${adaptor.id} has no ${reasoning.type} reasoning`);
  }
  if (
    reasoning.type === "effort" &&
    adaptor.efforts !== null &&
    !adaptor.efforts.includes(reasoning.value)
  ) {
    throw invalidVariant(key, id, `${adaptor.id} knows the efforts ${listOf(adaptor.efforts)}`);
  }
  if (
    reasoning.type === "budget_tokens" &&
    adaptor.addsBudgetToOutput &&
    reasoning.value >= capabilities.outputTokens
  ) {
    throw invalidVariant(
      key,
      id,
      `the budget leaves nothing of ${capabilities.outputTokens} output tokens`,
    );
  }
}

function invalidVariant(key: string, id: string, problem: string): CookieError {
  return new CookieError("invalid_variant", `${key}: the variant ${id} is invalid: ${problem}`);
}

function listOf(names: Iterable<string>): string {
  const list = [...names].join(", ");
  return list === "" ? "none" : list;
}

function byUtf8([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
