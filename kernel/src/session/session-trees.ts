import type { SessionId } from "@cookie-agent/sdk/protocol";
import type { TreeConsumer } from "../event/tree-consumer.ts";
import type { SessionLocation, SessionStore, TreeLease } from "../store/session-store.ts";
import type { Logger } from "../support/logger.ts";
import { SessionTree } from "./session-tree.ts";
import { loadTree, type TreeLoadParts, type TreeMember } from "./tree-load.ts";

export interface SessionTreesOptions extends Pick<TreeLoadParts, "fold" | "exclusively"> {
  readonly store: SessionStore;
  readonly consumers: readonly TreeConsumer[];
  readonly logger: Logger;
}

/** A tree on its way: loading, then offered to the consumers until they take it (S 3.5). */
interface TreeEntry {
  /** The lease it was loaded under; without one it is a snapshot that nobody keeps. */
  readonly lease: TreeLease | undefined;
  readonly loading: Promise<SessionTree>;
  tree: SessionTree | undefined;
  accepting: Promise<SessionTree> | undefined;
}

/** The trees of one store, each loaded when it is first used. */
export class SessionTrees {
  readonly #options: SessionTreesOptions;
  readonly #residents = new Map<SessionId, Map<SessionId, TreeMember>>();
  readonly #entries = new Map<SessionId, TreeEntry>();

  constructor(options: SessionTreesOptions) {
    this.#options = options;
  }

  /**
   * The tree of a root. While it is held here it is loaded once; of a tree that others may write each use loads a
   * fresh snapshot, which uses at the same time share. Rejects when a consumer refuses the tree (S-078).
   */
  async load(rootId: SessionId): Promise<SessionTree> {
    const entry = this.#entryOf(rootId);
    entry.accepting ??= this.#accept(entry);
    try {
      return await entry.accepting;
    } catch (error) {
      entry.accepting = undefined;
      throw error;
    }
  }

  /** A tree that is held here and loaded; undefined for any other. */
  loaded(rootId: SessionId): Promise<SessionTree> | undefined {
    const entry = this.#entries.get(rootId);
    return entry?.lease?.held ? entry.accepting : undefined;
  }

  /** The roots whose trees are held here and loaded. */
  get loadedRoots(): SessionId[] {
    return [...this.#entries].flatMap(([rootId, { lease, tree }]) =>
      lease?.held && tree !== undefined ? [rootId] : [],
    );
  }

  /** A session was opened for writing here, or was created. */
  join(member: TreeMember): void {
    this.#residentsOf(member.location.rootId).set(member.location.sessionId, member);
  }

  /** It was closed; `last` is what remains of it, null for one that was never published. */
  leave(member: TreeMember, last: TreeMember | null): void {
    const { rootId, sessionId } = member.location;
    const residents = this.#residentsOf(rootId);
    if (residents.get(sessionId) !== member) return;
    residents.delete(sessionId);
    const entry = this.#entries.get(rootId);
    if (last === null || entry === undefined) return;
    if (entry.tree === undefined)
      void entry.loading.then(
        (tree) => tree.keep(last),
        () => null,
      );
    else entry.tree.keep(last);
  }

  /** A session was published into a tree without being opened here. */
  async add(location: SessionLocation): Promise<void> {
    const tree = await this.loaded(location.rootId);
    if (tree === undefined || tree.has(location.sessionId)) return;
    tree.keep(await this.#options.fold(location));
  }

  #entryOf(rootId: SessionId): TreeEntry {
    const lease = this.#options.store.heldLease(rootId);
    const known = this.#entries.get(rootId);
    if (known !== undefined && known.lease === lease) return known;
    const loading = this.#read(rootId);
    const entry: TreeEntry = { lease, loading, tree: undefined, accepting: undefined };
    this.#entries.set(rootId, entry);
    loading.then(
      (tree) => {
        entry.tree = tree;
      },
      () => this.#forget(rootId, entry),
    );
    return entry;
  }

  async #accept(entry: TreeEntry): Promise<SessionTree> {
    const tree = await entry.loading;
    try {
      for (const consumer of this.#options.consumers) await consumer.accept?.(tree);
    } finally {
      // A snapshot may be stale as soon as it is made.
      if (entry.lease === undefined) this.#forget(tree.rootId, entry);
    }
    return tree;
  }

  #forget(rootId: SessionId, entry: TreeEntry): void {
    if (this.#entries.get(rootId) === entry) this.#entries.delete(rootId);
  }

  async #read(rootId: SessionId): Promise<SessionTree> {
    const residents = this.#residentsOf(rootId);
    const { members, diagnostics } = await loadTree(
      {
        store: this.#options.store,
        resident: (sessionId) => residents.get(sessionId),
        fold: this.#options.fold,
        exclusively: this.#options.exclusively,
      },
      rootId,
    );
    for (const diagnostic of diagnostics) {
      this.#options.logger.log("warn", "a session was left out of its tree", { diagnostic });
    }
    return new SessionTree({ rootId, loaded: members, residents, diagnostics });
  }

  #residentsOf(rootId: SessionId): Map<SessionId, TreeMember> {
    const known = this.#residents.get(rootId);
    if (known !== undefined) return known;
    const residents = new Map<SessionId, TreeMember>();
    this.#residents.set(rootId, residents);
    return residents;
  }
}
