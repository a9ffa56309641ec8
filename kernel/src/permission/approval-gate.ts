import {
  type ApprovalDecision,
  type ApprovalId,
  type ApprovalRecord,
  type ApprovalRequest,
  type ApprovalStatus,
  CookieError,
  type DecisionReason,
  type DecisionSource,
  type Digest,
  type EventPayload,
  type EventPayloadOf,
  isCookieError,
  type PermissionMode,
  type RunId,
  type StoredEvent,
  type ToolCallId,
} from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-log.ts";
import { createId } from "../support/create-id.ts";
import { createDeferred, type Deferred } from "../support/deferred.ts";
import { safeText, shownLines } from "../support/safe-text.ts";
import { ApprovalBook, isFinal } from "./approval-book.ts";
import { type ApprovalResponse, checkResponse, isRepeated } from "./check-response.ts";
import { DOOM_LOOP_REPETITIONS, DoomLoopCounter } from "./doom-loop.ts";
import type { PolicyVerdict } from "./evaluate-policy.ts";
import { answerByMode, decision } from "./permission-mode.ts";

/** One prepared call whose policy verdict is known. */
export interface GateRequest {
  readonly runId: RunId;
  readonly toolCallId: ToolCallId;
  readonly tool: string;
  readonly title: string;
  /** Untrusted text for people, such as a diff. */
  readonly detail: string | null;
  readonly fingerprint: Digest;
  readonly operation: ApprovalRequest["operation"];
  readonly verdict: PolicyVerdict;
  readonly trigger: "permission_policy" | "model_tool_approval";
  /** Rejects with `operation_changed` when what was prepared no longer holds; only for a tool that declares it. */
  revalidate?(): Promise<void>;
}

export type GateOutcome =
  | { readonly granted: true; readonly source: DecisionSource; readonly reason: DecisionReason }
  | {
      readonly granted: false;
      readonly source: DecisionSource;
      readonly reason: DecisionReason;
      readonly feedback: string | null;
      /** True when a person was needed, asked or not. */
      readonly escalated: boolean;
    };

/** What the gate needs of its session. */
export interface GatePorts {
  append(drafts: EventDraft[]): Promise<StoredEvent[]>;
  mode(): PermissionMode;
  /** True while an interactive client is attached to the tree. */
  attended(): boolean;
  /** True where nobody will ever answer: what would wait is rejected at once (S-165). */
  readonly headless: boolean;
  /** How long an unattended approval waits. */
  readonly approvalTimeoutMs: number;
}

type CancelReason = EventPayloadOf<"approval_cancelled">["reason_code"];

interface PendingApproval {
  readonly request: GateRequest;
  readonly approvalId: ApprovalId;
  readonly decided: Deferred<GateOutcome>;
  /** Whoever ends the approval does it through this chain, so exactly one does. */
  turn: Promise<unknown>;
  deadline: { readonly timer: NodeJS.Timeout; readonly expiresAt: string } | null;
}

const LOST_CODES = ["prepared_capability_lost", "plugin_crashed", "plugin_unavailable"];

const CANCEL_DECISIONS: Readonly<Record<CancelReason, ApprovalDecision>> = {
  user_cancelled: decision("cancelled", "user", "user_cancelled"),
  request_cancelled: decision("cancelled", "system", "request_cancelled"),
  operation_changed: decision("cancelled", "system", "operation_changed"),
  prepared_capability_lost: decision("cancelled", "system", "prepared_capability_lost"),
  approval_expired: decision(
    "expired",
    "system",
    "approval_expired",
    "the approval expired while nobody was attached to answer it",
  ),
};

/** Decides whether the prepared calls of one session may run, and holds the approvals that people must answer. */
export class ApprovalGate {
  readonly #ports: GatePorts;
  readonly #book = new ApprovalBook();
  readonly #doomLoop = new DoomLoopCounter();
  readonly #pending = new Map<ApprovalId, PendingApproval>();

  constructor(ports: GatePorts) {
    this.#ports = ports;
  }

  /**
   * Decides one call in the order of S 6.7. Callers ask for one call at a time, in model order.
   * A refusal is a value; it rejects only when the log cannot be written.
   *
   * @param signal Aborted when the run is cancelled: a waiting approval is then cancelled with it.
   */
  async decide(request: GateRequest, signal: AbortSignal): Promise<GateOutcome> {
    const { verdict, trigger } = request;
    if (verdict.effect === "deny") {
      return refuse(decision("rejected", "policy", "policy_denied"), false);
    }
    if (verdict.effect === "allow" && trigger === "permission_policy") {
      return { granted: true, source: "policy", reason: "policy_allowed" };
    }
    if (signal.aborted) return refuse(decision("cancelled", "system", "request_cancelled"), false);

    const approval = createApproval(request);
    const approvalId = approval.approval_id;
    const repetitions = this.#doomLoop.repetitions(request.fingerprint) + 1;
    if (repetitions >= DOOM_LOOP_REPETITIONS) {
      const feedback = `the same operation was asked for ${repetitions} times; do something else`;
      const final = decision("rejected", "doom_loop_guard", "doom_loop_detected", feedback);
      await this.#append(request.runId, [
        { type: "approval_requested", request: approval },
        {
          type: "approval_doom_loop_detected",
          approval_id: approvalId,
          operation_fingerprint: request.fingerprint,
          repetitions,
        },
        { type: "approval_evaluated", approval_id: approvalId, decision: final },
        { type: "approval_finalized", approval_id: approvalId, decision: final },
      ]);
      return refuse(final, false);
    }

    const { evaluated, final } = answerByMode(this.#ports.mode(), trigger, this.#ports.headless);
    const opening: EventPayload[] = [
      { type: "approval_requested", request: approval },
      { type: "approval_evaluated", approval_id: approvalId, decision: evaluated },
    ];
    if (final === null) return this.#escalate(request, approvalId, opening, signal);
    await this.#append(request.runId, [
      ...opening,
      { type: "approval_finalized", approval_id: approvalId, decision: final },
    ]);
    if (final.status !== "approved") return refuse(final, true);
    return { granted: true, source: final.source, reason: final.reason };
  }

  /**
   * Takes a person's answer; the first valid one wins, and the same one sent again gets the same result (S-169).
   *
   * @throws CookieError with the first check that fails, `operation_changed` or `prepared_capability_lost` when the
   *   operation no longer is what was asked for, `storage_failed` when the answer could not be recorded.
   */
  async respond(response: ApprovalResponse): Promise<ApprovalRecord> {
    if (response.feedback !== undefined && response.decision !== "reject") {
      throw new CookieError("invalid_params", "feedback goes with the decision reject only");
    }
    const pending = this.#pending.get(response.approval_id);
    if (pending === undefined) return this.#settle(response);
    return this.#inTurn(pending, () => this.#settle(response));
  }

  /** Approvals of this session, oldest first; a waiting one shows its running deadline. */
  list(status?: ApprovalStatus): ApprovalRecord[] {
    return this.#book
      .all()
      .filter((record) => status === undefined || record.status === status)
      .map((record) => this.#withDeadline(record));
  }

  /**
   * Folds one event of the session's log. Events must come in order; one that was seen before is skipped. Approvals
   * that were open at the end of a log that was read cannot be answered any more.
   */
  apply(event: StoredEvent): void {
    if (this.#book.apply(event)) this.#doomLoop.apply(event);
  }

  /** Stops the deadlines while a person is attached, and starts them afresh after the last one left (S-270). */
  attachmentChanged(attended: boolean): void {
    for (const pending of this.#pending.values()) {
      if (attended) this.#stopClock(pending);
      else this.#startClock(pending);
    }
  }

  async #escalate(
    request: GateRequest,
    approvalId: ApprovalId,
    opening: readonly EventPayload[],
    signal: AbortSignal,
  ): Promise<GateOutcome> {
    const decided = createDeferred<GateOutcome>();
    // Register before publishing: a client in this process answers before `append` returns.
    const opened = createDeferred();
    const pending: PendingApproval = {
      request,
      approvalId,
      decided,
      turn: opened.promise,
      deadline: null,
    };
    this.#pending.set(approvalId, pending);
    const onAbort = () => this.#expel(pending, "request_cancelled");
    try {
      await this.#append(request.runId, [
        ...opening,
        { type: "approval_escalated", approval_id: approvalId, reason_code: "escalated" },
      ]);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      if (!this.#ports.attended()) this.#startClock(pending);
      opened.resolve();
      return await decided.promise;
    } finally {
      opened.resolve();
      signal.removeEventListener("abort", onAbort);
      this.#stopClock(pending);
      this.#pending.delete(approvalId);
    }
  }

  async #settle(response: ApprovalResponse): Promise<ApprovalRecord> {
    const approvalId = response.approval_id;
    const record = this.#book.get(approvalId);
    if (record === undefined) {
      throw new CookieError("approval_not_found", `this session has no approval ${approvalId}`);
    }
    if (isRepeated(this.#book.responseOf(response.client_response_id), response)) return record;
    const pending = this.#pending.get(approvalId);
    if (pending === undefined) {
      throw new CookieError(
        "approval_not_pending",
        `it can no longer be answered; it is ${record.status}`,
      );
    }
    checkResponse(record.request, response);
    if (response.decision === "approve_once") await this.#revalidate(pending);
    await this.#recordResponse(pending, response);
    return this.#book.get(approvalId) ?? record;
  }

  async #recordResponse(pending: PendingApproval, response: ApprovalResponse): Promise<void> {
    const feedback = response.feedback ?? null;
    const recorded: EventPayload = {
      type: "approval_user_decision_recorded",
      approval_id: pending.approvalId,
      client_response_id: response.client_response_id,
      decision: response.decision,
      feedback,
    };
    if (response.decision === "cancel") {
      await this.#cancel(pending, "user_cancelled", [recorded]);
    } else if (response.decision === "reject") {
      const final = decision("rejected", "user", "user_rejected", feedback);
      await this.#finish(pending, [recorded], final);
    } else {
      await this.#finish(pending, [recorded], decision("approved", "user", "user_approved_once"));
    }
  }

  async #revalidate(pending: PendingApproval): Promise<void> {
    try {
      await pending.request.revalidate?.();
    } catch (error) {
      const lost = LOST_CODES.some((code) => isCookieError(error, code));
      const reason = lost ? "prepared_capability_lost" : "operation_changed";
      await this.#cancel(pending, reason);
      throw new CookieError(
        reason,
        "what was to be approved is no longer the same; the call failed and can be made again",
        { cause: error },
      );
    }
  }

  /** Ends the approval from outside of any response; a log that cannot be written becomes the caller's failure. */
  #expel(pending: PendingApproval, reason: CancelReason): void {
    this.#inTurn(pending, async () => {
      if (!this.#pending.has(pending.approvalId)) return;
      // Someone may have attached while an answer before this one was being settled.
      if (reason === "approval_expired" && this.#ports.attended()) return;
      await this.#cancel(pending, reason);
    }).catch((error: unknown) => pending.decided.reject(error));
  }

  async #cancel(
    pending: PendingApproval,
    reason: CancelReason,
    before: readonly EventPayload[] = [],
  ): Promise<void> {
    const cancelled: EventPayload = {
      type: "approval_cancelled",
      approval_id: pending.approvalId,
      reason_code: reason,
    };
    await this.#finish(pending, [...before, cancelled], CANCEL_DECISIONS[reason]);
  }

  async #finish(
    pending: PendingApproval,
    before: readonly EventPayload[],
    final: ApprovalDecision,
  ): Promise<void> {
    await this.#append(pending.request.runId, [
      ...before,
      { type: "approval_finalized", approval_id: pending.approvalId, decision: final },
    ]);
    this.#stopClock(pending);
    this.#pending.delete(pending.approvalId);
    pending.decided.resolve(
      final.status === "approved"
        ? { granted: true, source: final.source, reason: final.reason }
        : refuse(final, true),
    );
  }

  async #append(runId: RunId, payloads: readonly EventPayload[]): Promise<void> {
    const events = await this.#ports.append(payloads.map((payload) => ({ payload, runId })));
    for (const event of events) this.apply(event);
  }

  #inTurn<T>(pending: PendingApproval, act: () => Promise<T>): Promise<T> {
    const result = pending.turn.then(act);
    pending.turn = result.catch(() => undefined);
    return result;
  }

  #startClock(pending: PendingApproval): void {
    this.#stopClock(pending);
    const { approvalTimeoutMs } = this.#ports;
    const timer = setTimeout(() => this.#expel(pending, "approval_expired"), approvalTimeoutMs);
    timer.unref();
    const expiresAt = new Date(Date.now() + approvalTimeoutMs).toISOString();
    pending.deadline = { timer, expiresAt };
  }

  #stopClock(pending: PendingApproval): void {
    clearTimeout(pending.deadline?.timer);
    pending.deadline = null;
  }

  #withDeadline(record: ApprovalRecord): ApprovalRecord {
    const expiresAt = this.#pending.get(record.request.approval_id)?.deadline?.expiresAt ?? null;
    if (expiresAt === null || isFinal(record)) return record;
    const { request } = record;
    const constraints = { ...request.constraints, expires_at: expiresAt };
    return { ...record, request: { ...request, constraints } };
  }
}

function createApproval(request: GateRequest): ApprovalRequest {
  return {
    approval_id: createId<ApprovalId>(),
    revision: 1,
    trigger: request.trigger,
    tool_call_id: request.toolCallId,
    tool: request.tool,
    operation_fingerprint: request.fingerprint,
    operation: request.operation,
    evaluations: request.verdict.evaluations,
    title: safeText(request.title, 1024),
    detail: request.detail === null ? null : shownLines(request.detail, 64 * 1024),
    constraints: { allow_once: true, allow_tree_grant: false, cancellable: true, expires_at: null },
  };
}

function refuse(final: ApprovalDecision, escalated: boolean): GateOutcome {
  const { source, reason, feedback } = final;
  return { granted: false, source, reason, feedback, escalated };
}
