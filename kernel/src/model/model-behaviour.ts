import type { ModelDefaults, ModelOptions, VariantReasoning } from "../config/provider-config.ts";

/** How a model is asked: the base behaviour, or that of one variant. */
export interface ModelBehaviour {
  /** Null: the base behaviour. */
  readonly variant: string | null;
  readonly wireModelId: string;
  readonly defaults: ModelDefaults;
  readonly options: ModelOptions;
  readonly reasoning: VariantReasoning | null;
}
