import {
  CookieError,
  type EventPayload,
  type RunId,
  type RunSelection,
  type SessionId,
  type SessionMeta,
} from "@cookie-agent/sdk/protocol";
import { EventLog, type EventLogOptions, type LogObserver } from "../event/event-log.ts";
import { GroupCommit } from "../event/group-commit.ts";
import { ApprovalGate } from "../permission/approval-gate.ts";
import { snapshotAgent } from "../run/admit-run.ts";
import { sessionForeign } from "../store/session-foreign.ts";
import type { SessionLocation, StoredMetadata, TreeLease } from "../store/session-store.ts";
import { createId } from "../support/create-id.ts";
import type { UsageCells } from "../usage/usage-cells.ts";
import { UsageLedger } from "../usage/usage-ledger.ts";
import { createHandle } from "./create-handle.ts";
import { forkSession } from "./fork-session.ts";
import { GrantsOfTrees } from "./grants-of-trees.ts";
import { SessionActor } from "./session-actor.ts";
import { SessionLog } from "./session-log.ts";
import { SessionPresence } from "./session-presence.ts";
import type { SessionServices } from "./session-services.ts";
import { SessionState } from "./session-state.ts";
import { TreeModes } from "./tree-modes.ts";

/** A session that is written here, or on its way to be. */
interface Resident {
  readonly opening: Promise<SessionActor>;
  /** Null until it is open. */
  actor: SessionActor | null;
}

/** The sessions of one kernel: which are open here, and how one is created, read or adopted. */
export class SessionRegistry {
  readonly #services: SessionServices;
  readonly #sync = new GroupCommit();
  readonly #residents = new Map<SessionId, Resident>();
  readonly #modes = new TreeModes();
  readonly #grants: GrantsOfTrees;
  #closed = false;

  constructor(services: SessionServices) {
    this.#services = services;
    this.#grants = new GrantsOfTrees(services);
  }

  /** A session in memory; its first user message puts it on disk (S-023). */
  async create(selection: RunSelection): Promise<SessionActor> {
    this.#requireOpen();
    const { facts } = this.#services;
    const { document, snapshot } = snapshotAgent(facts, selection);
    const sessionId = createId<SessionId>();
    this.#grants.begin(sessionId);
    const { actor, log, ledger, observer, gate } = this.#build(sessionId, sessionId, true);
    log.attach(EventLog.create({ ...this.#logOptions(actor, ledger), observer }));
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
    return actor;
  }

  /** Sessions of this directory, newest first: those on disk and those not yet published; and what is unreadable. */
  async list(): Promise<{ sessions: SessionMeta[]; diagnostics: string[] }> {
    const { sessions: stored, diagnostics } = await this.#services.store.list();
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
    const resident = await this.#residents.get(sessionId)?.opening.catch(() => undefined);
    if (resident?.writable) return use(resident);
    const { actor } = await this.#fold(await this.#locate(sessionId));
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
      const fork = await forkSession(source.meta(), throughSeq, this.#services.store);
      this.#grants.grew(source.rootSessionId);
      return fork;
    });
  }

  /** What a log says of its session, for a cache that cannot be read (S-075). */
  async rebuildMetadata(location: SessionLocation): Promise<StoredMetadata> {
    const { actor } = await this.#fold(location);
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
    const residents = [...this.#residents.values()];
    const each = (act: (actor: SessionActor) => Promise<void>) =>
      Promise.allSettled(residents.map(async ({ opening }) => act(await opening)));
    await each((actor) => actor.quiesce());
    await this.#services.beforeLogsClose?.();
    await each((actor) => actor.close());
    this.#residents.clear();
  }

  async #adopt(sessionId: SessionId, lost: SessionActor | null): Promise<SessionActor> {
    this.#requireOpen();
    await lost?.close();
    const location = await this.#locate(sessionId);
    const lease = await this.#services.store.acquire(location.rootId);
    if (lease === undefined) throw sessionForeign(sessionId);
    let actor: SessionActor | undefined;
    try {
      if (!this.#holdsTree(location.rootId)) this.#grants.forget(location.rootId);
      const built = await this.#fold(location, lease);
      actor = built.actor;
      actor.treeGrants.join(sessionId, built.gate.grants);
      await this.#services.budgets?.load(location.rootId);
      await actor.settle();
      return actor;
    } catch (error) {
      await actor?.close();
      if (!this.#holdsTree(location.rootId)) lease.release();
      throw error;
    }
  }

  async #locate(sessionId: SessionId): Promise<SessionLocation> {
    const location = await this.#services.store.find(sessionId);
    if (location !== undefined) return location;
    throw new CookieError(
      "session_missing",
      `there is no session ${sessionId} in this directory; \`cookie session list\` shows them`,
    );
  }

  async #fold(location: SessionLocation, lease?: TreeLease): Promise<BuiltSession> {
    const built = this.#build(location.sessionId, location.rootId, lease !== undefined);
    built.log.attach(
      await EventLog.open({
        ...this.#logOptions(built.actor, built.ledger),
        observer: built.observer,
        location,
        ...(lease === undefined ? {} : { lease }),
      }),
    );
    return built;
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

  /** An actor with its fold, before its log is there: the log is folded into both state and approvals. */
  #build(sessionId: SessionId, rootSessionId: SessionId, isWriter: boolean): BuiltSession {
    const state = new SessionState();
    const log = new SessionLog();
    const presence = new SessionPresence(this.#modes, rootSessionId);
    const treeGrants = isWriter
      ? this.#grants.of(rootSessionId)
      : this.#grants.glimpse(rootSessionId);
    const gate = new ApprovalGate({
      append: (drafts) => log.append(drafts),
      mode: () => presence.mode,
      attended: () => presence.attended,
      headless: this.#services.headless,
      approvalTimeoutMs: this.#services.facts.config.approval.timeoutMs,
      treeGrants,
    });
    const observer: LogObserver = {
      apply(event) {
        state.apply(event);
        gate.apply(event);
      },
      restart() {
        state.restart();
        gate.restart();
      },
    };
    const services = this.#services;
    const budget = isWriter ? services.budgets?.of(rootSessionId) : undefined;
    const ledger = new UsageLedger(sessionId, budget && (() => budget.begin(sessionId)));
    const parts = {
      sessionId,
      rootSessionId,
      services,
      log,
      state,
      presence,
      gate,
      ledger,
      treeGrants,
    };
    const actor = new SessionActor({ ...parts, ...(budget && { budget }) });
    return { actor, log, ledger, observer, gate };
  }

  #logOptions(actor: SessionActor, ledger: UsageLedger): Omit<EventLogOptions, "observer"> {
    return {
      sessionId: actor.sessionId,
      rootId: actor.rootSessionId,
      store: this.#services.store,
      sync: this.#sync,
      metadata: () => actor.meta(),
      onEvent: (event) => ledger.apply(event),
      ...(this.#services.onRecorded && { onRecorded: this.#services.onRecorded }),
    };
  }
}

interface BuiltSession {
  readonly actor: SessionActor;
  readonly log: SessionLog;
  readonly ledger: UsageLedger;
  readonly observer: LogObserver;
  readonly gate: ApprovalGate;
}
