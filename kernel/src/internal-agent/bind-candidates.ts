import { type AgentDocument, PARENT_MODEL } from "../config/agent-document.ts";
import type { BoundModel } from "../model/bound-model.ts";
import type { ModelRuntime } from "../model/model-runtime.ts";

/** The models that an internal agent may ask, in order; those that are not available are left out (C-095). */
export async function bindCandidates(
  document: AgentDocument,
  parentModels: readonly BoundModel[],
  models: Pick<ModelRuntime, "bind" | "resolveVariant">,
): Promise<BoundModel[]> {
  if (!document.enabled) return [];
  const bound = await Promise.all(
    document.models.map(async ({ model, variant }) => {
      if (model === PARENT_MODEL) return parentModels;
      const selection = models.resolveVariant(model, variant);
      const candidate = selection && (await models.bind(selection));
      return candidate === undefined ? [] : [candidate];
    }),
  );
  return bound.flat();
}
