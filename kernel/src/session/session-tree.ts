import { CookieError, type SessionId, type UsageRollup } from "@cookie-agent/sdk/protocol";
import type { TreeConsumer, TreeProducts } from "../event/tree-consumer.ts";
import type { StoredMetadata } from "../store/session-store.ts";
import type { TreeMember } from "./tree-load.ts";

/** A root and all its descendants, as their origins place them (S 1.1). */
export class SessionTree implements TreeProducts {
  readonly rootId: SessionId;
  /** One line for each session that could not be loaded. */
  readonly diagnostics: readonly string[];
  readonly #known: Map<SessionId, TreeMember>;
  readonly #residents: ReadonlyMap<SessionId, TreeMember>;

  constructor(parts: {
    rootId: SessionId;
    loaded: ReadonlyMap<SessionId, TreeMember>;
    /** The members that are open here now; changes while the tree is in use. */
    residents: ReadonlyMap<SessionId, TreeMember>;
    diagnostics: readonly string[];
  }) {
    this.rootId = parts.rootId;
    this.#known = new Map(parts.loaded);
    this.#residents = parts.residents;
    this.diagnostics = parts.diagnostics;
  }

  get sessionIds(): readonly SessionId[] {
    return [...new Set([...this.#known.keys(), ...this.#residents.keys()])].sort();
  }

  has(sessionId: SessionId): boolean {
    return this.#member(sessionId) !== undefined;
  }

  meta(sessionId: SessionId): StoredMetadata | undefined {
    return this.#member(sessionId)?.meta();
  }

  /** What the visible branch of a session used. */
  usageOf(sessionId: SessionId): UsageRollup | undefined {
    return this.#member(sessionId)?.usage();
  }

  /** What is known of a session that the tree has. */
  require(sessionId: SessionId): StoredMetadata {
    const meta = this.meta(sessionId);
    if (meta !== undefined) return meta;
    throw new CookieError("session_missing", `session ${sessionId} is not of this tree`);
  }

  productOf<P>(consumer: TreeConsumer<P>, sessionId: SessionId): P | undefined {
    return this.#member(sessionId)?.products.of(consumer);
  }

  /** Direct children, oldest first. */
  childrenOf(sessionId: SessionId): StoredMetadata[] {
    return this.#metas().filter(
      ({ origin }) => origin.type === "delegated" && origin.parent_session_id === sessionId,
    );
  }

  /** Handles that a new session of this tree must not take (S-014). */
  handles(): ReadonlySet<string> {
    return new Set(this.#metas().flatMap(({ handle }) => (handle === undefined ? [] : [handle])));
  }

  /** Takes a member in as it is now: one that is new, or was closed here. */
  keep(member: TreeMember): void {
    this.#known.set(member.location.sessionId, member);
  }

  #metas(): StoredMetadata[] {
    return this.sessionIds.flatMap((sessionId) => this.meta(sessionId) ?? []);
  }

  #member(sessionId: SessionId): TreeMember | undefined {
    return this.#residents.get(sessionId) ?? this.#known.get(sessionId);
  }
}
