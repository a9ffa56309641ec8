import type { Digest, SessionId } from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import { findDigests } from "../artifact/find-digests.ts";
import type { CrossReference, SessionStore } from "../store/session-store.ts";

export interface CollectionParts {
  readonly store: Pick<SessionStore, "children" | "open" | "crossReferences" | "roots">;
  readonly artifacts: Pick<ArtifactStore, "collect" | "release">;
  /** Roots whose trees are loaded and held here. */
  readonly rootIds: readonly SessionId[];
  /** True while a run of the tree may publish what no log names yet. */
  isActive(rootId: SessionId): boolean;
  /** Told of a place that cannot be collected now. */
  onFailure(place: SessionId | "shared", error: unknown): void;
}

/**
 * Removes what no log and no other tree refers to (S-110). Only trees that are held here and loaded are looked at, and
 * the shared artifacts only while that is every tree of the store (S-111).
 */
export async function collectTrees(parts: CollectionParts): Promise<void> {
  const { artifacts, rootIds, store } = parts;
  let references: Promise<CrossReference[]> | undefined;
  const referencesOnce = () => {
    references ??= store.crossReferences();
    return references;
  };
  const places: { place: SessionId | "shared"; roots: readonly SessionId[] }[] = rootIds.map(
    (rootId) => ({ place: rootId, roots: [rootId] }),
  );
  const all = await store.roots();
  if (all.every((rootId) => rootIds.includes(rootId))) places.push({ place: "shared", roots: all });
  for (const { place, roots } of places) {
    if (!roots.some((rootId) => parts.isActive(rootId))) artifacts.release(place);
    try {
      await artifacts.collect(place, async (candidates) =>
        findMentioned(store, roots, candidates, await referencesOnce()),
      );
    } catch (error) {
      parts.onFailure(place, error);
    }
  }
}

/** The candidates that the logs of these trees or the ledger name. Rejects when one of the logs cannot be read. */
async function findMentioned(
  store: CollectionParts["store"],
  rootIds: readonly SessionId[],
  candidates: ReadonlySet<Digest>,
  references: readonly CrossReference[],
): Promise<ReadonlySet<Digest>> {
  const mentioned = new Set<Digest>();
  for (const { digest } of references) {
    if (candidates.has(digest)) mentioned.add(digest);
  }
  for (const rootId of rootIds) {
    for (const sessionId of [rootId, ...(await store.children(rootId))]) {
      if (mentioned.size === candidates.size) return mentioned;
      const log = await store.open({ sessionId, rootId });
      try {
        for await (const digest of findDigests(log.read())) {
          if (candidates.has(digest)) mentioned.add(digest);
        }
      } finally {
        await log.close();
      }
    }
  }
  return mentioned;
}
