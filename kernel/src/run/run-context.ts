import type { EventPayload, SessionId, SessionOrigin } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import type { RunLog } from "../event/run-log.ts";
import type { SuppliedMedia } from "../model/bound-model.ts";
import type { DispatchContext } from "../tool/call-context.ts";
import type { DispatchStages } from "../tool/dispatch-stages.ts";
import { Speculation } from "../tool/speculation.ts";
import type { BudgetCheck } from "../usage/budget-check.ts";
import type { AdmittedRun } from "./admit-run.ts";
import type { ContextEstimator } from "./context-estimator.ts";
import { ContextWatch } from "./context-watch.ts";
import type { History } from "./history.ts";
import { createSessionRights } from "./session-rights.ts";
import type { UserInputs } from "./user-inputs.ts";

/** What a run reads of its session's fold. */
export interface RunView {
  readonly history: History;
  readonly estimator: ContextEstimator;
  readonly pendingInputs: readonly { readonly seq: number; readonly text: string }[];
  /** Seqs of submitted inputs that no request has included yet. */
  readonly unappliedInputs: readonly number[];
  readonly modelTurnSeq: number;
  readonly inputThroughSeq: number;
  readonly lastSeq: number;
  readonly title: string | null;
  readonly titleBlocked: boolean;
  readonly userInputs: UserInputs;
  readonly origin: SessionOrigin | null;
  readonly handle: string | null;
}

/** Where the run stands in its chain of models. */
export interface ChainPosition {
  index: number;
  /** Retries on the current entry since its last success. */
  retries: number;
  /** Attempts of the whole run. */
  attempts: number;
}

const NO_MEDIA: SuppliedMedia = new Map();

/** One run on its way from input to rest: what was frozen, where it writes, how far it has come. */
export class RunContext {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  readonly run: AdmittedRun;
  readonly view: RunView;
  readonly stages: DispatchStages;
  /** Canonical; also the working directory of calls. */
  readonly workspaceRoot: string;
  /** Undefined: the tree may use what it likes. */
  readonly budget: BudgetCheck | undefined;
  readonly position: ChainPosition = { index: 0, retries: 0, attempts: 0 };
  readonly watch = new ContextWatch(this);
  /** Of the last request. */
  media: SuppliedMedia = NO_MEDIA;
  readonly #session = createSessionRights(this);

  constructor(parts: {
    sessionId: SessionId;
    rootSessionId: SessionId;
    run: AdmittedRun;
    view: RunView;
    stages: DispatchStages;
    workspaceRoot: string;
    budget?: BudgetCheck;
  }) {
    this.sessionId = parts.sessionId;
    this.rootSessionId = parts.rootSessionId;
    this.run = parts.run;
    this.view = parts.view;
    this.stages = parts.stages;
    this.workspaceRoot = parts.workspaceRoot;
    this.budget = parts.budget;
  }

  get log(): RunLog {
    return this.stages.log;
  }

  draft(payload: EventPayload): EventDraft {
    return { payload, runId: this.run.runId };
  }

  /** On whose behalf the calls of this run are made. */
  get callContext(): DispatchContext {
    return {
      sessionId: this.sessionId,
      rootSessionId: this.rootSessionId,
      runId: this.run.runId,
      cwd: this.workspaceRoot,
      workspaceRoot: this.workspaceRoot,
      session: this.#session,
    };
  }

  /** What can be done for a turn's calls while the turn still streams. */
  speculate(): Speculation {
    return new Speculation({
      toolSet: this.run.toolSet,
      context: this.callContext,
      stages: this.stages,
    });
  }
}
