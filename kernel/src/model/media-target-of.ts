import type { MediaTarget } from "../config/media-target.ts";
import type { CompiledModel } from "./compile-provider.ts";

/** What the model says it takes, together with what its wire can carry (T 4.3). */
export function mediaTargetOf({
  key,
  adaptor,
  capabilities,
}: Pick<CompiledModel, "key" | "adaptor" | "capabilities">): MediaTarget {
  return {
    model: key,
    family: adaptor.id,
    kinds: new Map(
      [...capabilities.media].map(([kind, limits]) => [
        kind,
        { ...limits, delivery: adaptor.media[kind] ?? null },
      ]),
    ),
  };
}
