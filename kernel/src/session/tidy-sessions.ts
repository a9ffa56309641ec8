import { chooseEvictions } from "./choose-evictions.ts";
import { collectTrees } from "./collect-trees.ts";
import type { SessionActor } from "./session-actor.ts";
import type { SessionServices } from "./session-services.ts";
import type { SessionTrees } from "./session-trees.ts";

export interface TidyParts {
  readonly services: SessionServices;
  readonly trees: SessionTrees;
  /** The sessions that are open here now. */
  actors(): readonly SessionActor[];
  /** Puts a session away unless something goes on in it. */
  evict(actor: SessionActor): Promise<void>;
  readonly nowMs: number;
}

/** One round of the janitor: idle children are put away, output that nothing refers to is removed (S 3.9, 4.3). */
export async function tidySessions({
  services,
  trees,
  actors,
  evict,
  nowMs,
}: TidyParts): Promise<void> {
  const { facts, logger, store, stages } = services;
  const children = actors().filter((actor) => actor.sessionId !== actor.rootSessionId);
  for (const actor of chooseEvictions(children, facts.config.delegation, nowMs)) await evict(actor);
  for (const { rootSessionId } of actors()) {
    // The tree of a root that was created here has never been read; there is nothing else in it.
    if (store.heldLease(rootSessionId) !== undefined) await trees.load(rootSessionId);
  }
  await collectTrees({
    store,
    artifacts: stages.artifacts,
    rootIds: trees.loadedRoots,
    isActive: (rootId) =>
      actors().some((actor) => actor.rootSessionId === rootId && actor.activeRunId !== null),
    onFailure: (place, error) =>
      logger.log("warn", "artifacts could not be collected", { place, error: String(error) }),
  });
}
