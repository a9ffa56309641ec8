import type {
  AgentSnapshot,
  ApprovalId,
  EventPayloadOf,
  ModelSelection,
  OverlayRule,
  Revisions,
  RunId,
  RunSelection,
  SessionOrigin,
  SessionStatus,
  StoredEvent,
  TitleChange,
  ToolCallId,
  ToolCallOwner,
} from "@cookie-agent/sdk/protocol";
import { UsageSum } from "@cookie-agent/sdk/protocol";
import { ContextEstimator } from "../run/context-estimator.ts";
import { History } from "../run/history.ts";
import { UserInputs } from "../run/user-inputs.ts";
import { usageOf } from "../usage/usage-event.ts";
import { OpenInternalAgents } from "./open-internal-agents.ts";

export interface PendingInput {
  readonly seq: number;
  readonly text: string;
}

/** A run as the log knows it. */
export interface RunRecord {
  readonly runId: RunId;
  readonly requestDigest: string;
}

export interface OpenCall {
  readonly runId: RunId;
  readonly tool: string;
  readonly owner: ToolCallOwner;
}

/**
 * What the log of one session says, folded event by event (S-021). Nothing here is inferred from processes, and
 * no fold looks back: its cost per event does not depend on the length of the session.
 */
export class SessionState {
  readonly history = new History();
  readonly usage = new UsageSum();
  /** Not folded: what providers reported while this process ran. */
  readonly estimator = new ContextEstimator();
  /** By the `client_run_id` that each was started with. */
  readonly runs = new Map<string, RunRecord>();
  readonly openCalls = new Map<ToolCallId, OpenCall>();
  readonly userInputs = new UserInputs();
  readonly openInternalAgents = new OpenInternalAgents();
  readonly openApprovals = new Map<ApprovalId, { readonly runId: RunId }>();
  origin: SessionOrigin | null = null;
  cwdIdentity = "";
  creationSelection: RunSelection | null = null;
  /** The agent of the newest run, before it the one that the session was created with. */
  agent: AgentSnapshot | null = null;
  revisions: Revisions | null = null;
  handle: string | null = null;
  status: SessionStatus = "idle";
  activeRun: RunRecord | null = null;
  title: string | null = null;
  titleUpdatedSeq = 0;
  titleBlocked = false;
  /** Changes that people asked for, by their `client_rename_id`. */
  readonly renames = new Map<string, TitleChange>();
  overlay: readonly OverlayRule[] = [];
  pendingInputs: PendingInput[] = [];
  unappliedInputs: readonly number[] = [];
  modelTurnSeq = 0;
  inputThroughSeq = 0;
  lastSeq = 0;
  lastActivity = "";
  /** When a run last ended; empty for a session that never ran. */
  lastRunEnd = "";
  lastAgent: string | null = null;
  lastModel: ModelSelection | null = null;

  /** As before the first event. */
  restart(): void {
    Object.assign(this, new SessionState());
  }

  apply(event: StoredEvent): void {
    this.lastSeq = event.seq;
    this.lastActivity = event.timestamp;
    this.history.apply(event);
    this.userInputs.apply(event);
    this.openInternalAgents.apply(event);
    const { payload } = event;
    const used = usageOf(payload);
    if (used !== null) this.usage.add(used);
    switch (payload.type) {
      case "session_created":
        this.#created(payload);
        break;
      case "session_permission_overlay_set":
        this.overlay = payload.overlay.rules;
        break;
      case "session_reverted":
        this.#ended("idle");
        this.openCalls.clear();
        this.openApprovals.clear();
        break;
      case "session_title_committed":
        this.#retitle(payload, event.seq);
        break;
      case "user_input_admitted":
        this.pendingInputs.push({ seq: event.seq, text: payload.input });
        break;
      case "user_input_recalled":
        this.pendingInputs = this.pendingInputs.filter((p) => p.seq !== payload.user_input_seq);
        break;
      case "user_input_submitted":
        this.inputThroughSeq = event.seq;
        this.unappliedInputs = [...this.unappliedInputs, event.seq];
        if (this.pendingInputs[0]?.text === payload.input) this.pendingInputs.shift();
        break;
      case "user_input_applied":
        this.unappliedInputs = this.unappliedInputs.filter((s) => s !== payload.user_input_seq);
        break;
      case "run_started":
        this.#started(payload, event.run_id);
        break;
      case "run_completed":
        this.#ended("completed");
        break;
      case "run_failed":
        this.#ended("failed");
        break;
      case "run_cancelled":
        this.#ended("cancelled");
        break;
      case "run_interrupted":
        this.#ended("interrupted");
        break;
      case "model_turn_committed":
        this.modelTurnSeq = payload.model_turn_seq;
        this.lastModel = payload.resolved_model;
        break;
      case "tool_call_started":
        if (event.run_id !== null) {
          this.openCalls.set(payload.tool_call_id, {
            runId: event.run_id,
            tool: payload.tool,
            owner: payload.owner,
          });
        }
        break;
      case "tool_call_terminated":
        this.openCalls.delete(payload.tool_call_id);
        break;
      case "approval_requested":
        if (event.run_id !== null) {
          this.openApprovals.set(payload.request.approval_id, { runId: event.run_id });
        }
        break;
      case "approval_finalized":
        this.openApprovals.delete(payload.approval_id);
        break;
      default:
        break;
    }
  }

  /** Below the root of the tree. */
  get depth(): number {
    return this.origin?.type === "delegated" ? this.origin.depth : 0;
  }

  #created(payload: EventPayloadOf<"session_created">): void {
    this.origin = payload.origin;
    this.cwdIdentity = payload.cwd_identity;
    this.creationSelection = payload.creation_selection;
    this.agent = payload.creation_agent;
    this.revisions = {
      runtime_revision: payload.runtime_revision,
      catalog_revision: payload.catalog_revision,
      provider_state_revision: payload.provider_state_revision,
      model_revision: payload.model_revision,
      agent_revision: payload.agent_revision,
      recipe_registry_revision: payload.recipe_registry_revision,
      manifest_revision: payload.manifest_revision,
    };
    this.handle = payload.short_id ?? null;
  }

  #retitle(payload: EventPayloadOf<"session_title_committed">, seq: number): void {
    const { change } = payload;
    const isAutomatic = change.kind === "fallback_set" || change.kind === "internal_agent_set";
    // It may come right after what somebody chose meanwhile, which then stays (S-028).
    if (isAutomatic && this.titleBlocked) return;
    if ("client_rename_id" in change) this.renames.set(change.client_rename_id, change);
    this.titleUpdatedSeq = seq;
    this.titleBlocked = change.kind !== "user_reset";
    this.title = "title" in change ? change.title : null;
  }

  #started(payload: EventPayloadOf<"run_started">, runId: RunId | null): void {
    if (runId === null) return;
    this.activeRun = { runId, requestDigest: payload.request_digest };
    this.runs.set(payload.client_run_id, this.activeRun);
    this.status = "running";
    this.agent = payload.agent;
    const { agent, model } = payload.selection;
    if (this.lastAgent !== agent || this.lastModel === null) this.lastModel = model;
    this.lastAgent = agent;
  }

  #ended(status: SessionStatus): void {
    this.activeRun = null;
    this.pendingInputs = [];
    this.unappliedInputs = [];
    this.lastRunEnd = this.lastActivity;
    this.status = status;
  }
}
