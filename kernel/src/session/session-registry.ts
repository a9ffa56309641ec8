import {
  CookieError,
  type RunId,
  type RunSelection,
  type SessionId,
  type SessionMeta,
} from "@cookie-agent/sdk/protocol";
import { EventLog, type EventLogOptions, type LogObserver } from "../event/event-log.ts";
import { GroupCommit } from "../event/group-commit.ts";
import { ApprovalGate } from "../permission/approval-gate.ts";
import { snapshotAgent } from "../run/admit-run.ts";
import type { SessionLocation, StoredMetadata, TreeLease } from "../store/session-store.ts";
import { createId } from "../support/create-id.ts";
import { createHandle } from "./create-handle.ts";
import { SessionActor } from "./session-actor.ts";
import { SessionLog } from "./session-log.ts";
import { SessionPresence } from "./session-presence.ts";
import type { SessionServices } from "./session-services.ts";
import { SessionState } from "./session-state.ts";

/** The sessions of one kernel: which are open here, and how one is created, found or adopted. */
export class SessionRegistry {
  readonly #services: SessionServices;
  readonly #sync = new GroupCommit();
  readonly #open = new Map<SessionId, Promise<SessionActor>>();

  constructor(services: SessionServices) {
    this.#services = services;
  }

  /** A session in memory; its first user message puts it on disk (S-023). */
  async create(selection: RunSelection): Promise<SessionActor> {
    const { facts } = this.#services;
    const { document, snapshot } = snapshotAgent(facts, selection);
    const sessionId = createId<SessionId>();
    const { actor, log, observer } = this.#build(sessionId, sessionId);
    log.attach(EventLog.create({ ...this.#logOptions(actor), observer }));
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
    this.#open.set(sessionId, Promise.resolve(actor));
    return actor;
  }

  /** Sessions of this directory, newest first: those on disk and those not yet published. */
  async list(): Promise<SessionMeta[]> {
    const { sessions } = await this.#services.store.list();
    const byId = new Map<SessionId, SessionMeta>(sessions.map((meta) => [meta.session_id, meta]));
    for (const opening of this.#open.values()) {
      const actor = await opening.catch(() => undefined);
      if (actor !== undefined) byId.set(actor.sessionId, actor.meta());
    }
    return [...byId.values()].sort((a, b) => (a.last_activity < b.last_activity ? 1 : -1));
  }

  /** The session for reading: ours as it is, another process's as a fresh snapshot, without the tree lock. */
  get(sessionId: SessionId): Promise<SessionActor> {
    return this.#resident(sessionId, false);
  }

  /** The session for writing: takes the tree lock and settles what a crash left open (S-085). */
  adopt(sessionId: SessionId): Promise<SessionActor> {
    return this.#resident(sessionId, true);
  }

  /** What a log says of its session, for a cache that cannot be read (S-075). */
  async rebuildMetadata(location: SessionLocation): Promise<StoredMetadata> {
    const { actor } = await this.#fold(location);
    const metadata = actor.meta();
    await actor.close();
    return metadata;
  }

  async access(sessionId: SessionId): Promise<"owned" | "free" | "foreign"> {
    return this.#services.store.access(sessionId);
  }

  /** The session whose active run this is. */
  async withRun(runId: RunId): Promise<SessionActor> {
    for (const opening of this.#open.values()) {
      const actor = await opening.catch(() => undefined);
      if (actor?.activeRunId === runId) return actor;
    }
    throw new CookieError("run_missing", `run ${runId} is not active here`);
  }

  /** Ends every run with a record and closes every log; each step is tried whatever the others do (S-094). */
  async close(): Promise<void> {
    const actors = await Promise.allSettled(this.#open.values());
    this.#open.clear();
    await Promise.allSettled(
      actors.map((result) => (result.status === "fulfilled" ? result.value.close() : Promise.resolve())),
    );
  }

  async #resident(sessionId: SessionId, writing: boolean): Promise<SessionActor> {
    const opening = this.#open.get(sessionId);
    const resident = await opening;
    if (resident?.writable) return resident;
    const current = this.#open.get(sessionId);
    if (current !== opening && current !== undefined) return this.#resident(sessionId, writing);
    const entering = this.#load(sessionId, writing);
    this.#open.set(sessionId, entering);
    entering.catch(() => {
      if (this.#open.get(sessionId) === entering) this.#open.delete(sessionId);
    });
    await resident?.close();
    return entering;
  }

  async #load(sessionId: SessionId, writing: boolean): Promise<SessionActor> {
    const location = await this.#services.store.find(sessionId);
    if (location === undefined) {
      throw new CookieError(
        "session_missing",
        `there is no session ${sessionId} in this directory; \`cookie session list\` shows them`,
      );
    }
    const lease = writing ? await this.#lease(location) : undefined;
    try {
      const { actor } = await this.#fold(location, lease);
      if (writing) await actor.settle();
      return actor;
    } catch (error) {
      lease?.release();
      throw error;
    }
  }

  async #fold(location: SessionLocation, lease?: TreeLease): Promise<BuiltSession> {
    const built = this.#build(location.sessionId, location.rootId);
    built.log.attach(
      await EventLog.open({
        ...this.#logOptions(built.actor),
        observer: built.observer,
        location,
        ...(lease === undefined ? {} : { lease }),
      }),
    );
    return built;
  }

  async #lease(location: SessionLocation): Promise<TreeLease> {
    const lease = await this.#services.store.acquire(location.rootId);
    if (lease === undefined) {
      throw new CookieError("session_foreign", "session is owned by another cookie process");
    }
    return lease;
  }

  /** An actor with its fold, before its log is there: the log is folded into both state and approvals. */
  #build(sessionId: SessionId, rootSessionId: SessionId): BuiltSession {
    const state = new SessionState();
    const log = new SessionLog();
    const presence = new SessionPresence();
    const gate = new ApprovalGate({
      append: (drafts) => log.append(drafts),
      mode: () => presence.mode,
      attended: () => presence.attended,
      headless: this.#services.headless,
      approvalTimeoutMs: this.#services.facts.config.approval.timeoutMs,
    });
    const observer: LogObserver = {
      apply(event) {
        state.apply(event);
        gate.apply(event);
      },
    };
    const services = this.#services;
    const parts = { sessionId, rootSessionId, services, log, state, presence, gate };
    return { actor: new SessionActor(parts), log, observer };
  }

  #logOptions(actor: SessionActor): Omit<EventLogOptions, "observer"> {
    return {
      sessionId: actor.sessionId,
      rootId: actor.rootSessionId,
      store: this.#services.store,
      sync: this.#sync,
      metadata: () => actor.meta(),
    };
  }
}

interface BuiltSession {
  readonly actor: SessionActor;
  readonly log: SessionLog;
  readonly observer: LogObserver;
}
