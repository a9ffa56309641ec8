import { CookieError } from "@cookie-agent/sdk/protocol";
import type { CustomModel, VariantReasoning } from "../config/provider-config.ts";
import type { AdaptorFacts } from "./adaptors/adaptor.ts";
import type { ModelBehaviour } from "./model-behaviour.ts";

export interface CompiledBehaviours {
  readonly base: ModelBehaviour;
  readonly variants: ReadonlyMap<string, ModelBehaviour>;
}

/** Base and variants of one model; a variant inherits field by field, lists and reasoning as a whole (C 5.7). */
export function compileVariants(
  key: string,
  model: CustomModel,
  adaptor: AdaptorFacts,
): CompiledBehaviours {
  const base: ModelBehaviour = {
    variant: null,
    wireModelId: model.wireModelId,
    defaults: model.defaults,
    options: model.options,
    reasoning: null,
  };
  const variants = new Map<string, ModelBehaviour>();
  for (const [id, directive] of model.variants) {
    const problem = reasoningProblem(directive.reasoning, model, adaptor);
    if (problem !== null) {
      throw new CookieError("invalid_variant", `${key}: the variant ${id} is invalid: ${problem}`);
    }
    variants.set(id, {
      variant: id,
      wireModelId: directive.wireModelId ?? base.wireModelId,
      defaults: { ...base.defaults, ...directive.defaults },
      options: { ...base.options, ...directive.options },
      reasoning: directive.reasoning ?? base.reasoning,
    });
  }
  return { base, variants };
}

/** What the wire of this adaptor cannot express; the types were checked when the file was read. */
function reasoningProblem(
  reasoning: VariantReasoning | undefined,
  { capabilities }: CustomModel,
  adaptor: AdaptorFacts,
): string | null {
  if (reasoning?.type === "effort" && adaptor.efforts?.includes(reasoning.value) === false) {
    return `${adaptor.id} takes the efforts ${adaptor.efforts.join(", ")}`;
  }
  if (
    reasoning?.type === "budget_tokens" &&
    adaptor.addsBudgetToOutput &&
    reasoning.value >= capabilities.outputTokens
  ) {
    return `its budget leaves nothing of the ${capabilities.outputTokens} output tokens`;
  }
  return null;
}
