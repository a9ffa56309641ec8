import type { SessionId } from "@cookie-agent/sdk/protocol";
import type { LogObserver } from "../event/branch-fold.ts";
import { ConsumerFolds } from "../event/consumer-folds.ts";
import { EventLog, type EventLogOptions } from "../event/event-log.ts";
import { GroupCommit } from "../event/group-commit.ts";
import type { TreeConsumer } from "../event/tree-consumer.ts";
import { ApprovalGate } from "../permission/approval-gate.ts";
import type { SessionLocation, TreeLease } from "../store/session-store.ts";
import { UsageLedger } from "../usage/usage-ledger.ts";
import type { GrantsOfTrees } from "./grants-of-trees.ts";
import { SessionActor } from "./session-actor.ts";
import { SessionLog } from "./session-log.ts";
import { SessionPresence } from "./session-presence.ts";
import type { SessionServices } from "./session-services.ts";
import { SessionState } from "./session-state.ts";
import { TreeModes } from "./tree-modes.ts";

export interface SessionBuilderParts {
  readonly services: SessionServices;
  readonly consumers: readonly TreeConsumer[];
  readonly grants: GrantsOfTrees;
  /** Told when a delegated session's cache has been written anew. */
}

/** A session with its log, and what only its tree needs of it. */
export interface BuiltSession {
  readonly actor: SessionActor;
  readonly log: SessionLog;
  readonly gate: ApprovalGate;
  readonly folds: ConsumerFolds;
}

interface UnopenedSession extends BuiltSession {
  readonly options: EventLogOptions;
}

/** Puts the parts of one session together around its log. */
export class SessionBuilder {
  readonly #parts: SessionBuilderParts;
  readonly #sync = new GroupCommit();
  readonly #modes = new TreeModes();

  constructor(parts: SessionBuilderParts) {
    this.#parts = parts;
  }

  /** A root that begins in memory; its log is empty. */
  begin(sessionId: SessionId): BuiltSession {
    this.#parts.grants.begin(sessionId);
    const built = this.#build({ sessionId, rootId: sessionId }, true);
    built.log.attach(EventLog.create(built.options));
    return built;
  }

  /** A published session, folded; with a lease for writing, without one as a snapshot. */
  async open(location: SessionLocation, lease?: TreeLease): Promise<BuiltSession> {
    const built = this.#build(location, lease !== undefined);
    const { options } = built;
    built.log.attach(await EventLog.open({ ...options, location, ...(lease && { lease }) }));
    return built;
  }

  /** An actor with its fold, before its log is there: the log is folded into both state and approvals. */
  #build(location: SessionLocation, isWriter: boolean): UnopenedSession {
    const { sessionId, rootId: rootSessionId } = location;
    const { services, consumers, grants } = this.#parts;
    const state = new SessionState();
    const log = new SessionLog();
    const presence = new SessionPresence(this.#modes, rootSessionId);
    const treeGrants = isWriter ? grants.of(rootSessionId) : grants.glimpse(rootSessionId);
    const gate = new ApprovalGate({
      append: (drafts) => log.append(drafts),
      mode: () => presence.mode,
      attended: () => presence.attended,
      headless: services.headless,
      approvalTimeoutMs: services.facts.config.approval.timeoutMs,
      treeGrants,
    });
    const folds = new ConsumerFolds(consumers, location);
    const observer: LogObserver = {
      apply(event) {
        state.apply(event);
        gate.apply(event);
        folds.apply(event);
      },
      restart() {
        state.restart();
        gate.restart();
        folds.restart();
      },
    };
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
    const options: EventLogOptions = {
      sessionId,
      rootId: rootSessionId,
      store: services.store,
      sync: this.#sync,
      observer,
      syncReferences: () => services.stages.artifacts.syncNames(rootSessionId),
      metadata: () => actor.meta(),
      onEvent: (event) => ledger.apply(event),
      ...(services.onRecorded && { onRecorded: services.onRecorded }),
    };
    return { actor, log, gate, folds, options };
  }
}
