import {
  type EventPayload,
  RUNLESS_EVENTS,
  type RunId,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { ApprovalChecks } from "./approval-checks.ts";
import { CheckpointChecks } from "./checkpoint-checks.ts";
import type { EventDraft } from "./event-draft.ts";
import { INTERNAL_AGENT_EVENTS, InternalAgentChecks } from "./internal-agent-checks.ts";
import { requireRule } from "./require-rule.ts";
import { ToolCallChecks } from "./tool-call-checks.ts";
import { UndoJournal } from "./undo-journal.ts";

/** A run as far as the order of its events needs it. */
interface RunState {
  readonly runId: RunId;
  attempt: string | undefined;
  attemptOrdinal: number;
  fallbackIndex: number;
  /** Ordinal that the next attempt on this chain entry must carry. */
  nextRetryOrdinal: number;
  attemptsOnEntry: number;
  /** A committed turn without a usage record. */
  unrecordedTurn: number | undefined;
}

/** Events that settle what a run left behind when it ended (S 3.8). */
const SETTLING_EVENTS: ReadonlySet<string> = new Set<EventPayload["type"]>([
  "tool_call_terminated",
  "approval_cancelled",
  "approval_finalized",
  "session_title_committed",
  // What a run has asked for may be answered after it.
  ...INTERNAL_AGENT_EVENTS,
]);

/**
 * Judges whether an event may follow those before it (S 2.4). `admit` is strict and rolls back with `undo`;
 * `fold` takes what was read as it is, however incomplete.
 */
export class AppendChecks {
  readonly #journal = new UndoJournal();
  readonly #toolCalls = new ToolCallChecks(this.#journal);
  readonly #approvals = new ApprovalChecks(this.#journal);
  readonly #internalAgents = new InternalAgentChecks(this.#journal);
  readonly #checkpoints = new CheckpointChecks(this.#journal);
  readonly #endedRuns = new Set<RunId>();
  readonly #session: { run: RunState | undefined; modelTurnSeq: number } = {
    run: undefined,
    modelTurnSeq: 0,
  };

  /** Throws `engine` without any change, or counts the draft as written until `undo`. */
  admit(draft: EventDraft, seq: number): void {
    this.check(draft, seq);
    this.#advance(draft, seq);
  }

  /** Like `admit`, for an event that changes nothing here. */
  check(draft: EventDraft, seq: number): void {
    this.#checkScope(draft, seq);
    this.#checkOrder(draft, seq);
  }

  fold(event: StoredEvent): void {
    const { run_id: runId } = event;
    // A run whose start could not be read counts as ended, so that what it left behind can be settled (S-059).
    const starts = event.payload.type === "run_started";
    if (runId !== null && !starts && this.#session.run?.runId !== runId) this.#endedRuns.add(runId);
    this.#journal.pause();
    this.#advance({ payload: event.payload, runId }, event.seq);
    this.#journal.resume();
  }

  keep(): void {
    this.#journal.keep();
  }

  undo(): void {
    this.#journal.undo();
  }

  #checkScope({ payload, runId }: EventDraft, seq: number): void {
    const { type } = payload;
    requireRule((type === "session_created") === (seq === 1), payload, "must be the first event");
    if (runId === null) {
      const allowed = RUNLESS_EVENTS.must.has(type) || RUNLESS_EVENTS.may.has(type);
      requireRule(allowed, payload, "needs a run");
    } else {
      requireRule(!RUNLESS_EVENTS.must.has(type), payload, "must not belong to a run");
    }
    if (payload.type === "session_title_committed") {
      const automatic = ["fallback_set", "internal_agent_set"].includes(payload.change.kind);
      requireRule(automatic === (runId !== null), payload, "has the wrong run scope");
    }
  }

  #checkOrder({ payload, runId }: EventDraft, seq: number): void {
    if (payload.type === "session_reverted") {
      requireRule(payload.through_seq < seq, payload, "goes back to an event that comes later");
    }
    if (payload.type === "run_started") {
      requireRule(this.#session.run === undefined, payload, "another run is active");
      requireRule(
        runId !== null && !this.#endedRuns.has(runId),
        payload,
        "the run has already ended",
      );
      return;
    }
    this.#internalAgents.check(payload, runId);
    const { run: active } = this.#session;
    const isQuiet =
      active === undefined || (active.runId === runId && active.attempt === undefined);
    this.#checkpoints.check(payload, seq, isQuiet);
    if (runId === null) return;
    const run = this.#session.run?.runId === runId ? this.#session.run : undefined;
    if (run === undefined) {
      requireRule(SETTLING_EVENTS.has(payload.type), payload, "its run is not active");
      requireRule(this.#endedRuns.has(runId), payload, "its run is unknown");
    } else {
      this.#checkModel(run, payload, seq);
    }
    this.#toolCalls.check(payload, runId);
    this.#approvals.check(payload, runId);
  }

  #checkModel(run: RunState, payload: EventPayload, seq: number): void {
    switch (payload.type) {
      case "model_attempt_started":
        requireRule(run.attempt === undefined, payload, "another attempt is active");
        requireRule(payload.attempt_ordinal === run.attemptOrdinal + 1, payload, "attempt ordinal");
        requireRule(payload.fallback_index === run.fallbackIndex, payload, "fallback index");
        requireRule(payload.retry_ordinal === run.nextRetryOrdinal, payload, "retry ordinal");
        return;
      case "model_request_prepared":
      case "model_replay_evaluated":
      case "text_delta":
      case "reasoning_delta":
      case "attempt_abandoned":
        requireRule(payload.attempt_id === run.attempt, payload, "its attempt is not active");
        return;
      case "model_turn_committed":
        requireRule(payload.attempt_id === run.attempt, payload, "its attempt is not active");
        requireRule(
          payload.model_turn_seq === this.#session.modelTurnSeq + 1,
          payload,
          "model turn sequence",
        );
        return;
      case "model_usage_recorded":
        requireRule(
          payload.model_turn_seq === run.unrecordedTurn,
          payload,
          "no committed turn waits for it",
        );
        return;
      case "model_fallback":
        requireRule(run.attempt === undefined, payload, "an attempt is active");
        requireRule(payload.from_fallback_index === run.fallbackIndex, payload, "fallback index");
        requireRule(payload.to_fallback_index === run.fallbackIndex + 1, payload, "not adjacent");
        requireRule(payload.attempts_on_from === run.attemptsOnEntry, payload, "attempt count");
        return;
      case "user_input_applied":
      case "user_input_recalled":
        requireRule(payload.user_input_seq < seq, payload, "its input comes later");
        return;
      default:
        return;
    }
  }

  #advance({ payload, runId }: EventDraft, seq: number): void {
    if (payload.type === "session_reverted") this.#endRun(this.#session.run?.runId);
    this.#internalAgents.advance(payload, runId);
    this.#checkpoints.advance(payload, seq);
    if (runId === null) return;
    this.#toolCalls.advance(payload, runId);
    this.#approvals.advance(payload, runId);
    switch (payload.type) {
      case "run_started":
        this.#journal.assign(this.#session, { run: startRun(runId) });
        return;
      case "run_completed":
      case "run_failed":
      case "run_cancelled":
      case "run_interrupted":
        this.#endRun(runId);
        return;
      case "model_turn_committed":
        this.#journal.assign(this.#session, { modelTurnSeq: payload.model_turn_seq });
        break;
      default:
        break;
    }
    const run = this.#session.run;
    const progress = run?.runId === runId ? modelProgress(run, payload) : null;
    if (run !== undefined && progress !== null) this.#journal.assign(run, progress);
  }

  #endRun(runId: RunId | undefined): void {
    if (runId === undefined) return;
    this.#journal.add(this.#endedRuns, runId);
    if (this.#session.run?.runId === runId) this.#journal.assign(this.#session, { run: undefined });
  }
}

function startRun(runId: RunId): RunState {
  return {
    runId,
    attempt: undefined,
    attemptOrdinal: 0,
    fallbackIndex: 0,
    nextRetryOrdinal: 0,
    attemptsOnEntry: 0,
    unrecordedTurn: undefined,
  };
}

/** What an event changes in the course of a run's attempts; null for nothing. */
function modelProgress(run: RunState, payload: EventPayload): Partial<RunState> | null {
  switch (payload.type) {
    case "model_attempt_started":
      return {
        attempt: payload.attempt_id,
        attemptOrdinal: payload.attempt_ordinal,
        fallbackIndex: payload.fallback_index,
        nextRetryOrdinal: payload.retry_ordinal + 1,
        attemptsOnEntry: run.attemptsOnEntry + 1,
      };
    case "attempt_abandoned":
      return { attempt: undefined };
    case "model_turn_committed":
      // A success clears the retries: the budget is per request, the fallback position per run.
      return {
        attempt: undefined,
        nextRetryOrdinal: 0,
        attemptsOnEntry: 0,
        unrecordedTurn: payload.model_turn_seq,
      };
    case "model_usage_recorded":
      return { unrecordedTurn: undefined };
    case "model_fallback":
      return { fallbackIndex: payload.to_fallback_index, nextRetryOrdinal: 0, attemptsOnEntry: 0 };
    default:
      return null;
  }
}
