import {
  type ApprovalDecision,
  type ApprovalId,
  type ApprovalRecord,
  type ApprovalRequest,
  CookieError,
  type EventPayload,
  type EventPayloadOf,
  isCookieError,
  type RunId,
} from "@cookie-agent/sdk/protocol";
import { keptDelay } from "../support/deadline.ts";
import { createDeferred, type Deferred } from "../support/deferred.ts";
import type { ApprovalBook } from "./approval-book.ts";
import { type ApprovalResponse, checkResponse, isRepeated } from "./check-response.ts";
import { type GateOutcome, outcomeOf } from "./gate-outcome.ts";
import { decision } from "./permission-mode.ts";
import type { TreeGrants } from "./tree-grants.ts";

/** The call behind an approval, as far as its answer concerns it. */
export interface EscalatedCall {
  readonly runId: RunId;
  /** Rejects with `operation_changed` when what was prepared no longer holds; only for a tool that declares it. */
  revalidate?(): Promise<void>;
}

export interface EscalationPorts {
  readonly book: ApprovalBook;
  /** Records events of a run and folds them into the book. */
  append(runId: RunId, payloads: readonly EventPayload[]): Promise<unknown>;
  /** True while an interactive client is attached to the tree. */
  attended(): boolean;
  /** Where an answer for the whole tree is kept; absent: none is offered. */
  readonly treeGrants?: TreeGrants;
  /** How long an unattended approval waits. */
  readonly approvalTimeoutMs: number;
}

type CancelReason = EventPayloadOf<"approval_cancelled">["reason_code"];

interface EscalatedApproval {
  readonly call: EscalatedCall;
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

/** The approvals of one session that a person must answer, each until its answer, its deadline or its run's end. */
export class EscalatedApprovals {
  readonly #ports: EscalationPorts;
  readonly #open = new Map<ApprovalId, EscalatedApproval>();

  constructor(ports: EscalationPorts) {
    this.#ports = ports;
  }

  /** Escalates an approval, whose events so far are `opening`, and resolves once it has ended. */
  async escalate(
    call: EscalatedCall,
    approvalId: ApprovalId,
    opening: readonly EventPayload[],
    signal: AbortSignal,
  ): Promise<GateOutcome> {
    const decided = createDeferred<GateOutcome>();
    // Register before publishing: a client in this process answers before `append` returns.
    const opened = createDeferred();
    const approval: EscalatedApproval = {
      call,
      approvalId,
      decided,
      turn: opened.promise,
      deadline: null,
    };
    this.#open.set(approvalId, approval);
    const onAbort = () => this.#expel(approval, "request_cancelled");
    try {
      await this.#ports.append(call.runId, [
        ...opening,
        { type: "approval_escalated", approval_id: approvalId, reason_code: "escalated" },
      ]);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      if (!this.#ports.attended()) this.#startClock(approval);
      opened.resolve();
      return await decided.promise;
    } finally {
      opened.resolve();
      signal.removeEventListener("abort", onAbort);
      this.#stopClock(approval);
      this.#open.delete(approvalId);
    }
  }

  /** Takes a person's answer; see `ApprovalGate.respond`. */
  async respond(response: ApprovalResponse): Promise<ApprovalRecord> {
    if (response.feedback !== undefined && response.decision !== "reject") {
      throw new CookieError("invalid_params", "feedback goes with the decision reject only");
    }
    const approval = this.#open.get(response.approval_id);
    if (approval === undefined) return this.#settle(response);
    return this.#inTurn(approval, () => this.#settle(response));
  }

  /** When the approval will expire; null while no deadline runs. */
  expiresAt(approvalId: ApprovalId): string | null {
    return this.#open.get(approvalId)?.deadline?.expiresAt ?? null;
  }

  /** Stops the deadlines while a person is attached, and starts them afresh after the last one left (S-270). */
  attachmentChanged(attended: boolean): void {
    for (const approval of this.#open.values()) {
      if (attended) this.#stopClock(approval);
      else this.#startClock(approval);
    }
  }

  async #settle(response: ApprovalResponse): Promise<ApprovalRecord> {
    const approvalId = response.approval_id;
    const record = this.#ports.book.get(approvalId);
    if (record === undefined) {
      throw new CookieError("approval_not_found", `this session has no approval ${approvalId}`);
    }
    if (isRepeated(this.#ports.book.responseOf(response.client_response_id), response))
      return record;
    const approval = this.#open.get(approvalId);
    if (approval === undefined) {
      throw new CookieError(
        "approval_not_pending",
        `it can no longer be answered; it is ${record.status}`,
      );
    }
    checkResponse(record.request, response);
    const approves = response.decision === "approve_once" || response.decision === "approve_tree";
    if (approves) await this.#revalidate(approval);
    await this.#recordResponse(approval, record.request, response);
    return this.#ports.book.get(approvalId) ?? record;
  }

  async #recordResponse(
    approval: EscalatedApproval,
    request: ApprovalRequest,
    response: ApprovalResponse,
  ): Promise<void> {
    const feedback = response.feedback ?? null;
    const recorded: EventPayload = {
      type: "approval_user_decision_recorded",
      approval_id: approval.approvalId,
      client_response_id: response.client_response_id,
      decision: response.decision,
      feedback,
    };
    if (response.decision === "cancel") {
      await this.#cancel(approval, "user_cancelled", [recorded]);
    } else if (response.decision === "reject") {
      const final = decision("rejected", "user", "user_rejected", feedback);
      await this.#finish(approval, [recorded], final);
    } else if (response.decision === "approve_tree") {
      await this.#grantTree(approval, request, recorded);
    } else {
      await this.#finish(approval, [recorded], decision("approved", "user", "user_approved_once"));
    }
  }

  /** The answer and the grant are one block of the log; when it is refused, the approval goes on waiting. */
  async #grantTree(
    approval: EscalatedApproval,
    request: ApprovalRequest,
    recorded: EventPayload,
  ): Promise<void> {
    const { approvalId } = approval;
    await this.#ports.treeGrants?.grant(
      request,
      () => this.#ports.book.rulesChangedSince(approvalId),
      (grant) =>
        this.#finish(
          approval,
          [recorded, { type: "tree_approval_grant_committed", grant }],
          decision("approved", "user", "user_approved_tree", null, grant.grant_id),
        ),
    );
  }

  async #revalidate(approval: EscalatedApproval): Promise<void> {
    try {
      await approval.call.revalidate?.();
    } catch (error) {
      const lost = LOST_CODES.some((code) => isCookieError(error, code));
      const reason = lost ? "prepared_capability_lost" : "operation_changed";
      await this.#cancel(approval, reason);
      throw new CookieError(
        reason,
        "what was to be approved is no longer the same; the call failed and can be made again",
        { cause: error },
      );
    }
  }

  /** Ends the approval from outside of any response; a log that cannot be written becomes the caller's failure. */
  #expel(approval: EscalatedApproval, reason: CancelReason): void {
    this.#inTurn(approval, async () => {
      if (!this.#open.has(approval.approvalId)) return;
      // Someone may have attached while an answer before this one was being settled.
      if (reason === "approval_expired" && this.#ports.attended()) return;
      await this.#cancel(approval, reason);
    }).catch((error: unknown) => approval.decided.reject(error));
  }

  async #cancel(
    approval: EscalatedApproval,
    reason: CancelReason,
    before: readonly EventPayload[] = [],
  ): Promise<void> {
    const cancelled: EventPayload = {
      type: "approval_cancelled",
      approval_id: approval.approvalId,
      reason_code: reason,
    };
    await this.#finish(approval, [...before, cancelled], CANCEL_DECISIONS[reason]);
  }

  async #finish(
    approval: EscalatedApproval,
    before: readonly EventPayload[],
    final: ApprovalDecision,
  ): Promise<void> {
    await this.#ports.append(approval.call.runId, [
      ...before,
      { type: "approval_finalized", approval_id: approval.approvalId, decision: final },
    ]);
    this.#stopClock(approval);
    this.#open.delete(approval.approvalId);
    approval.decided.resolve(outcomeOf(final, true));
  }

  #inTurn<T>(approval: EscalatedApproval, act: () => Promise<T>): Promise<T> {
    const result = approval.turn.then(act);
    approval.turn = result.catch(() => undefined);
    return result;
  }

  #startClock(approval: EscalatedApproval): void {
    this.#stopClock(approval);
    const approvalTimeoutMs = keptDelay(this.#ports.approvalTimeoutMs);
    const timer = setTimeout(() => this.#expel(approval, "approval_expired"), approvalTimeoutMs);
    timer.unref();
    const expiresAt = new Date(Date.now() + approvalTimeoutMs).toISOString();
    approval.deadline = { timer, expiresAt };
  }

  #stopClock(approval: EscalatedApproval): void {
    clearTimeout(approval.deadline?.timer);
    approval.deadline = null;
  }
}
