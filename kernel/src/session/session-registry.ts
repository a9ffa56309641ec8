import {
  CookieError,
  type EventPayload,
  type RunId,
  type RunSelection,
  type SessionId,
  type SessionMeta,
} from "@cookie-agent/sdk/protocol";
import type { ConsumerFolds } from "../event/consumer-folds.ts";
import { snapshotAgent } from "../run/admit-run.ts";
import { sessionForeign } from "../store/session-foreign.ts";
import type { SessionLocation, StoredMetadata } from "../store/session-store.ts";
import { createId } from "../support/create-id.ts";
import { KeyMutex } from "../support/key-mutex.ts";
import type { UsageCells } from "../usage/usage-cells.ts";
import { createHandle } from "./create-handle.ts";
import { forkSession } from "./fork-session.ts";
import { GRANTS_OF_SESSION, GrantsOfTrees } from "./grants-of-trees.ts";
import type { SessionActor } from "./session-actor.ts";
import { type BuiltSession, SessionBuilder } from "./session-builder.ts";
import { missing, notRoot, running } from "./session-errors.ts";
import type { SessionServices } from "./session-services.ts";
import type { SessionTree } from "./session-tree.ts";
import { SessionTrees } from "./session-trees.ts";
import type { TreeMember } from "./tree-load.ts";

/** A session that is written here, or on its way to be. */
interface Resident {
  readonly opening: Promise<SessionActor>;
  /** Null until it is open. */
  actor: SessionActor | null;
}

/** The sessions of one kernel: which are open here, and how one is created, read or adopted. */
export class SessionRegistry {
  readonly #services: SessionServices;
  readonly #builder: SessionBuilder;
  readonly #residents = new Map<SessionId, Resident>();
  readonly #grants: GrantsOfTrees;
  readonly #joined = new WeakMap<SessionActor, ResidentMember>();
  /** By session: it is opened for writing, or its log is folded while nobody may open it. */
  readonly #openings = new KeyMutex();
  readonly #trees: SessionTrees;
  /** Sessions that were put away and are still ours to write (S 3.9). */
  readonly #evicted = new Set<SessionId>();
  readonly #removing = new Set<SessionId>();
  #tidying: Promise<void> | null = null;
  #closed = false;

  constructor(services: SessionServices) {
    this.#services = services;
    const consumers = [GRANTS_OF_SESSION, ...(services.treeConsumers ?? [])];
    this.#grants = new GrantsOfTrees({
      store: services.store,
      logger: services.logger,
      loadTree: (rootId) => this.#trees.load(rootId),
    });
    this.#trees = new SessionTrees({
      store: services.store,
      consumers,
      logger: services.logger,
      fold: (location) => this.#foldMember(location),
      exclusively: (sessionId, work) => this.#exclusively(sessionId, work),
    });
    this.#builder = new SessionBuilder({
      services,
      consumers,
      grants: this.#grants,
    });
  }

  /** A session in memory; its first user message puts it on disk (S-023). */
  async create(selection: RunSelection): Promise<SessionActor> {
    this.#requireOpen();
    const { facts } = this.#services;
    const { document, snapshot } = snapshotAgent(facts, selection, 0);
    const sessionId = createId<SessionId>();
    const built = this.#builder.begin(sessionId);
    const { actor, log, gate } = built;
    await log.append([
      {
        payload: {
          type: "session_created",
          origin: { type: "root" },
          cwd_identity: facts.workspaceRoot,
          creation_selection: selection,
          creation_agent: snapshot,
          ...facts.revisions([document]),
          short_id: createHandle(snapshot.agent),
        },
        runId: null,
      },
    ]);
    this.#requireOpen();
    actor.treeGrants.join(sessionId, gate.grants);
    this.#residents.set(sessionId, { opening: Promise.resolve(actor), actor });
    this.#join(built);
    return actor;
  }

  /** Roots of this directory or of all of them, newest first: those on disk and those not yet published; and what is unreadable. */
  async list(everywhere = false): Promise<{ sessions: SessionMeta[]; diagnostics: string[] }> {
    const { sessions: stored, diagnostics } = await this.#services.store.list(everywhere);
    const byId = new Map<SessionId, SessionMeta>(stored.map((meta) => [meta.session_id, meta]));
    for (const { actor } of this.#residents.values()) {
      if (actor !== null) byId.set(actor.sessionId, actor.meta());
    }
    const sessions = [...byId.values()].sort((a, b) =>
      a.last_activity < b.last_activity ? 1 : -1,
    );
    return { sessions, diagnostics };
  }

  /**
   * Reads a session: one that is open here as it is, any other as a fresh snapshot that ends with `use`. Takes no
   * lock (S-091).
   */
  async read<T>(sessionId: SessionId, use: (actor: SessionActor) => Promise<T> | T): Promise<T> {
    if (this.#evicted.has(sessionId)) await this.adopt(sessionId).catch(() => undefined);
    const resident = await this.#residents.get(sessionId)?.opening.catch(() => undefined);
    if (resident?.writable) return use(resident);
    const { actor } = await this.#builder.open(await this.#locate(sessionId));
    try {
      return await use(actor);
    } finally {
      await actor.close();
    }
  }

  /** The session for writing: takes the tree lock and settles what a crash left open (S-085). */
  adopt(sessionId: SessionId): Promise<SessionActor> {
    const known = this.#residents.get(sessionId);
    if (known !== undefined && (known.actor === null || known.actor.writable)) return known.opening;
    const opening = this.#adopt(sessionId, known?.actor ?? null);
    const resident: Resident = { opening, actor: null };
    this.#residents.set(sessionId, resident);
    opening.then(
      (actor) => {
        resident.actor = actor;
      },
      () => {
        if (this.#residents.get(sessionId) === resident) this.#residents.delete(sessionId);
      },
    );
    return opening;
  }

  /** A new session with the conversation of another one up to an event; takes no lock of that one's tree if it is a root. */
  async fork(sessionId: SessionId, throughSeq: number): Promise<SessionId> {
    this.#requireOpen();
    return this.read(sessionId, async (source) => {
      await source.passFork(throughSeq);
      this.#requireOpen();
      const { rootSessionId: rootId } = source;
      const meta = source.meta();
      const { store, stages } = this.#services;
      const parts = { store, artifacts: stages.artifacts };
      if (meta.origin.type === "root") return forkSession(meta, throughSeq, parts);
      const takenHandles = (await this.#trees.load(rootId)).handles();
      const forkId = await forkSession(meta, throughSeq, { ...parts, takenHandles });
      this.#grants.grew(rootId);
      await this.#trees.add({ sessionId: forkId, rootId });
      return forkId;
    });
  }

  /** What a log says of its session, for a cache that cannot be read (S-075). */
  async rebuildMetadata(location: SessionLocation): Promise<StoredMetadata> {
    const { actor } = await this.#builder.open(location);
    const metadata = actor.meta();
    await actor.close();
    return metadata;
  }

  /** What a session that is written here has really used; undefined for any other. */
  spent(sessionId: SessionId): UsageCells | undefined {
    const resident = this.#residents.get(sessionId)?.actor;
    return resident?.writable === true ? resident.spent : undefined;
  }

  /** The root of a session's tree; undefined when there is no such session. */
  async rootOf(sessionId: SessionId): Promise<SessionId | undefined> {
    const resident = this.#residents.get(sessionId)?.actor;
    return resident?.rootSessionId ?? (await this.#services.store.find(sessionId))?.rootId;
  }

  /** The other sessions of its tree that are open here. */
  othersOfTree({ sessionId, rootSessionId }: SessionActor): SessionActor[] {
    return [...this.#residents.values()].flatMap(({ actor }) =>
      actor !== null && actor.sessionId !== sessionId && actor.rootSessionId === rootSessionId
        ? [actor]
        : [],
    );
  }

  /** The tree of a session, loaded at its first use (S 3.5). */
  async tree(sessionId: SessionId): Promise<SessionTree> {
    const resident = this.#residents.get(sessionId)?.actor?.rootSessionId;
    const tree = await this.#trees.load(resident ?? (await this.#locate(sessionId)).rootId);
    if (tree.has(sessionId)) return tree;
    const problem = tree.diagnostics.find((line) => line.includes(sessionId));
    throw new CookieError("storage_failed", problem ?? `session ${sessionId} cannot be read`, {
      data: { session_id: sessionId },
    });
  }

  /**
   * Removes a root with all its descendants from the disk; yields their ids. Rejects with `session_running` while one
   * of them runs, with `not_root_session` for a descendant.
   */
  async remove(sessionId: SessionId): Promise<SessionId[]> {
    this.#requireOpen();
    const unpublished = this.#residents.get(sessionId)?.actor;
    if (unpublished && !unpublished.published) {
      if (!(await this.#evict(unpublished))) throw running(sessionId);
      return [sessionId];
    }
    const { rootId } = await this.#locate(sessionId);
    if (rootId !== sessionId) throw notRoot(sessionId, rootId);
    if (this.#removing.has(rootId)) throw missing(sessionId);
    this.#removing.add(rootId);
    try {
      return await this.#remove(rootId);
    } finally {
      this.#removing.delete(rootId);
    }
  }

  /** What the janitor does: puts idle children away and removes output that nothing refers to (S 3.9, 4.3). */
  tidy(nowMs = Date.now()): Promise<void> {
    this.#tidying ??= this.#tidy(nowMs).finally(() => {
      this.#tidying = null;
    });
    return this.#tidying;
  }

  access(sessionId: SessionId): Promise<"owned" | "free" | "foreign"> {
    return this.#services.store.access(sessionId);
  }

  /** The session whose active run this is. */
  ofRun(runId: RunId): SessionActor {
    const actor = this.#findRun(runId);
    if (actor !== undefined) return actor;
    throw new CookieError("run_missing", `run ${runId} is not active here`);
  }

  /** False when the run has ended already (S-148). */
  cancelRun(runId: RunId, reason: string | null): boolean {
    return this.#findRun(runId)?.cancel(runId, reason) ?? false;
  }

  /** Adds events outside any run to a session that is open here; rejects for any other. */
  async record(sessionId: SessionId, payloads: readonly EventPayload[]): Promise<void> {
    const actor = this.#residents.get(sessionId)?.actor;
    if (actor) return actor.record(payloads);
    throw new CookieError("session_missing", `session ${sessionId} is not open here`);
  }

  /** Ends every run with a record and closes every log; each step is tried whatever the others do (S-094). */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#tidying?.catch(() => undefined);
    const residents = [...this.#residents.values()];
    const each = (act: (actor: SessionActor) => Promise<void>) =>
      Promise.allSettled(residents.map(async ({ opening }) => act(await opening)));
    await each((actor) => actor.quiesce());
    await this.#services.beforeLogsClose?.();
    await each((actor) => actor.close());
    this.#residents.clear();
  }

  async #tidy(nowMs: number): Promise<void> {
    if (this.#closed || this.#residents.size === 0) return;
    const { tidySessions } = await import("./tidy-sessions.ts");
    await tidySessions({
      services: this.#services,
      trees: this.#trees,
      actors: () => [...this.#residents.values()].flatMap(({ actor }) => actor ?? []),
      evict: async (actor) => {
        if (await this.#evict(actor)) this.#evicted.add(actor.sessionId);
      },
      nowMs,
    });
  }

  async #remove(rootId: SessionId): Promise<SessionId[]> {
    const { store } = this.#services;
    const held = store.heldLease(rootId);
    const lease = held ?? (await store.acquire(rootId));
    if (lease === undefined) throw sessionForeign(rootId);
    try {
      const opening = [...this.#residents.values()].map(({ opening: actor }) => actor);
      const opened = await Promise.all(opening.map((actor) => actor.catch(() => null)));
      const residents = opened.filter((actor) => actor?.rootSessionId === rootId);
      for (const actor of residents) {
        if (actor !== null && !(await this.#evict(actor))) throw running(actor.sessionId);
      }
      const ids = [rootId, ...(await store.children(rootId))];
      await store.remove(rootId);
      for (const id of ids) this.#evicted.delete(id);
      return ids;
    } finally {
      if (held === undefined) lease.release();
    }
  }

  /** Puts a session away that nothing goes on in; whoever uses it next opens it anew. False when something does. */
  #evict(actor: SessionActor): Promise<boolean> {
    const { sessionId } = actor;
    return this.#exclusively(sessionId, async () => {
      const isRetired = await actor.retire(() => {
        if (this.#residents.get(sessionId)?.actor === actor) this.#residents.delete(sessionId);
      });
      if (isRetired) await this.#leave(actor);
      return isRetired;
    });
  }

  async #adopt(sessionId: SessionId, lost: SessionActor | null): Promise<SessionActor> {
    this.#requireOpen();
    if (lost !== null) await this.#leave(lost);
    const location = await this.#locate(sessionId);
    if (this.#removing.has(location.rootId)) throw missing(sessionId);
    const lease = await this.#services.store.acquire(location.rootId);
    if (lease === undefined) throw sessionForeign(sessionId);
    let built: BuiltSession | undefined;
    try {
      if (!this.#holdsTree(location.rootId)) this.#grants.forget(location.rootId);
      built = await this.#exclusively(sessionId, async () => {
        const opened = await this.#builder.open(location, lease);
        this.#join(opened);
        return opened;
      });
      built.actor.treeGrants.join(sessionId, built.gate.grants);
      await this.#trees.load(location.rootId);
      await this.#services.budgets?.load(location.rootId);
      await built.actor.settle();
      this.#evicted.delete(sessionId);
      return built.actor;
    } catch (error) {
      if (built !== undefined) await this.#leave(built.actor);
      if (!this.#holdsTree(location.rootId)) lease.release();
      throw error;
    }
  }

  async #locate(sessionId: SessionId): Promise<SessionLocation> {
    const location = await this.#services.store.find(sessionId);
    if (location !== undefined) return location;
    throw missing(sessionId);
  }

  /** A session as its log has it now, for its tree; nothing of it stays open (S-079). */
  async #foldMember(location: SessionLocation): Promise<TreeMember> {
    const { actor, folds } = await this.#builder.open(location);
    const member = frozenMember(location, actor, folds);
    await actor.close();
    return member;
  }

  #join({ actor, folds }: BuiltSession): void {
    const location = { sessionId: actor.sessionId, rootId: actor.rootSessionId };
    const member = {
      location,
      meta: () => actor.meta(),
      usage: () => actor.usage.rollup(),
      products: folds,
    };
    this.#joined.set(actor, member);
    this.#trees.join(member);
  }

  /** Closes a session that was open here; its tree keeps what it was at the end. */
  async #leave(actor: SessionActor): Promise<void> {
    const member = this.#joined.get(actor);
    await actor.close();
    if (member === undefined) return;
    const { location, products } = member;
    const last = actor.published ? frozenMember(location, actor, products) : null;
    this.#trees.leave(member, last);
  }

  async #exclusively<T>(sessionId: SessionId, work: () => Promise<T>): Promise<T> {
    const done = await this.#openings.acquire([sessionId]);
    try {
      return await work();
    } finally {
      done();
    }
  }

  #findRun(runId: RunId): SessionActor | undefined {
    for (const { actor } of this.#residents.values()) {
      if (actor?.activeRunId === runId) return actor;
    }
    return undefined;
  }

  #holdsTree(rootId: SessionId): boolean {
    return [...this.#residents.values()].some(
      ({ actor }) => actor?.rootSessionId === rootId && actor.writable,
    );
  }

  #requireOpen(): void {
    if (this.#closed) throw new CookieError("shutting_down", "the kernel is closing");
  }
}

/** A session as it is now, for when it is closed. */
function frozenMember(
  location: SessionLocation,
  actor: SessionActor,
  folds: ConsumerFolds,
): TreeMember {
  const meta = actor.meta();
  const usage = actor.usage.rollup();
  return { location, meta: () => meta, usage: () => usage, products: folds.freeze() };
}

interface ResidentMember extends TreeMember {
  readonly products: ConsumerFolds;
}
