import type { EventPayload, SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-log.ts";
import type { AdmittedRun } from "./admit-run.ts";
import type { History } from "./history.ts";

/** What a run may write: the log of its session. */
export interface RunLog {
  append(drafts: readonly EventDraft[]): Promise<StoredEvent[]>;
  appendStream(draft: EventDraft): void;
}

/** What a run reads of its session's fold. */
export interface RunView {
  readonly history: History;
  readonly pendingInputs: readonly { readonly seq: number; readonly text: string }[];
  readonly modelTurnSeq: number;
  readonly inputThroughSeq: number;
  readonly title: string | null;
  readonly titleBlocked: boolean;
}

/** Where the run stands in its chain of models. */
export interface ChainPosition {
  index: number;
  /** Retries on the current entry since its last success. */
  retries: number;
  /** Attempts of the whole run. */
  attempts: number;
}

/** One run on its way from input to rest: what was frozen, where it writes, how far it has come. */
export class RunContext {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  readonly run: AdmittedRun;
  readonly log: RunLog;
  readonly view: RunView;
  readonly position: ChainPosition = { index: 0, retries: 0, attempts: 0 };
  /** Seq of the newest input that a request has included. */
  appliedThroughSeq = 0;
  readonly #warm: (plugin: string) => void;

  constructor(parts: {
    sessionId: SessionId;
    rootSessionId: SessionId;
    run: AdmittedRun;
    log: RunLog;
    view: RunView;
    warm(plugin: string): void;
  }) {
    this.sessionId = parts.sessionId;
    this.rootSessionId = parts.rootSessionId;
    this.run = parts.run;
    this.log = parts.log;
    this.view = parts.view;
    this.#warm = parts.warm;
  }

  draft(payload: EventPayload): EventDraft {
    return { payload, runId: this.run.runId };
  }

  /** Starts the process behind a tool name that the model has begun to call. */
  warmTool(name: string): void {
    const plugin = this.run.toolSet.pluginOf(name);
    if (plugin !== undefined) this.#warm(plugin);
  }
}
