import { CookieError, type SessionId } from "@cookie-agent/sdk/protocol";
import { foldLog } from "../event/fold-log.ts";
import { SessionGrants } from "../permission/session-grants.ts";
import { TreeGrants } from "../permission/tree-grants.ts";
import { GrantJournal } from "../store/grant-journal.ts";
import type { SessionLocation, SessionStore } from "../store/session-store.ts";
import type { Logger } from "../support/logger.ts";

/** The grants of every tree that is worked on here; the sessions of a tree share theirs (S 6.10). */
export class GrantsOfTrees {
  readonly #store: SessionStore;
  readonly #logger: Logger;
  readonly #journal: GrantJournal;
  readonly #trees = new Map<SessionId, TreeGrants>();

  constructor({ store, logger }: { store: SessionStore; logger: Logger }) {
    this.#store = store;
    this.#logger = logger;
    this.#journal = new GrantJournal(store.directory);
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
        readOthers: (known) => this.#readOthers(rootId, known),
        onProblem: (error) => {
          this.#logger.log("warn", "remembered approvals cannot be used for now", {
            root_session_id: rootId,
            error: error instanceof CookieError ? error.message : String(error),
          });
        },
      },
      isNew,
    );
  }

  async #readOthers(
    rootId: SessionId,
    known: ReadonlySet<SessionId>,
  ): Promise<Map<SessionId, SessionGrants>> {
    const found = new Map<SessionId, SessionGrants>();
    for (const sessionId of await this.#store.listTree(rootId)) {
      if (known.has(sessionId)) continue;
      const grants = await this.#read({ sessionId, rootId });
      if (grants !== undefined) found.set(sessionId, grants);
    }
    return found;
  }

  /** Undefined for a log that cannot be read: what it grants does not count (S 3.5). */
  async #read(location: SessionLocation): Promise<SessionGrants | undefined> {
    const grants = new SessionGrants();
    try {
      const file = await this.#store.open(location);
      try {
        await foldLog(() => file.read(), location.sessionId, {
          apply: (event) => grants.apply(event),
          restart: () => grants.reset(),
        });
      } finally {
        await file.close();
      }
      return grants;
    } catch (error) {
      this.#logger.log("warn", "the approvals that a session remembers could not be read", {
        session_id: location.sessionId,
        error: error instanceof Error ? error.message : String(error),
      });
      return undefined;
    }
  }
}
