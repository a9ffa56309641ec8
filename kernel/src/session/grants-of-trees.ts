import { CookieError, type SessionId } from "@cookie-agent/sdk/protocol";
import type { TreeConsumer, TreeProducts } from "../event/tree-consumer.ts";
import { SessionGrants } from "../permission/session-grants.ts";
import { TreeGrants } from "../permission/tree-grants.ts";
import { GrantJournal } from "../store/grant-journal.ts";
import type { SessionStore } from "../store/session-store.ts";
import type { Logger } from "../support/logger.ts";

/** What each session of a tree grants, kept with the tree (S 3.5). */
export const GRANTS_OF_SESSION: TreeConsumer<SessionGrants> = {
  begin() {
    const grants = new SessionGrants();
    return { apply: (event) => grants.apply(event), product: () => grants };
  },
};

export interface GrantsOfTreesOptions {
  readonly store: Pick<SessionStore, "directory">;
  readonly logger: Logger;
  /** A tree with the products of `GRANTS_OF_SESSION`; a session that cannot be read grants nothing. */
  loadTree(rootId: SessionId): Promise<TreeProducts>;
}

/** The grants of every tree that is worked on here; the sessions of a tree share theirs (S 6.10). */
export class GrantsOfTrees {
  readonly #options: GrantsOfTreesOptions;
  readonly #journal: GrantJournal;
  readonly #trees = new Map<SessionId, TreeGrants>();

  constructor(options: GrantsOfTreesOptions) {
    this.#options = options;
    this.#journal = new GrantJournal(options.store.directory);
  }

  /** Those of a tree that begins now. */
  begin(rootId: SessionId): TreeGrants {
    return this.#keep(this.#create(rootId, true));
  }

  /** Those of a tree that is held here, read when they are first needed. */
  of(rootId: SessionId): TreeGrants {
    return this.#trees.get(rootId) ?? this.#keep(this.#create(rootId, false));
  }

  /** Those of a tree as the disk has them, for one look. */
  glimpse(rootId: SessionId): TreeGrants {
    return this.#create(rootId, false);
  }

  /** A session was added to a tree without having been opened. */
  grew(rootId: SessionId): void {
    this.#trees.get(rootId)?.grew();
  }

  /** A tree that is held here no more may be changed by others. */
  forget(rootId: SessionId): void {
    this.#trees.delete(rootId);
  }

  #keep(tree: TreeGrants): TreeGrants {
    this.#trees.set(tree.rootSessionId, tree);
    return tree;
  }

  #create(rootId: SessionId, isNew: boolean): TreeGrants {
    return new TreeGrants(
      rootId,
      {
        journal: this.#journal,
        readAll: () => this.#readAll(rootId),
        onProblem: (error) => {
          this.#options.logger.log("warn", "remembered approvals cannot be used for now", {
            root_session_id: rootId,
            error: error instanceof CookieError ? error.message : String(error),
          });
        },
      },
      isNew,
    );
  }

  async #readAll(rootId: SessionId): Promise<Map<SessionId, SessionGrants>> {
    const tree = await this.#options.loadTree(rootId);
    const found = new Map<SessionId, SessionGrants>();
    for (const sessionId of tree.sessionIds) {
      const grants = tree.productOf(GRANTS_OF_SESSION, sessionId);
      if (grants !== undefined) found.set(sessionId, grants);
    }
    return found;
  }
}
