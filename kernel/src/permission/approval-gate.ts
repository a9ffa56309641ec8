import type {
  ApprovalId,
  ApprovalRecord,
  ApprovalRequest,
  ApprovalStatus,
  Digest,
  EventPayload,
  PermissionMode,
  RunId,
  StoredEvent,
  ToolCallId,
  TreeApprovalGrant,
} from "@cookie-agent/sdk/protocol";
import type { EventDraft } from "../event/event-draft.ts";
import type { RunLog } from "../event/run-log.ts";
import { createId } from "../support/create-id.ts";
import { safeText, shownLines } from "../support/safe-text.ts";
import { ApprovalBook, isFinal } from "./approval-book.ts";
import type { ApprovalResponse } from "./check-response.ts";
import { DOOM_LOOP_REPETITIONS, DoomLoopCounter } from "./doom-loop.ts";
import {
  EscalatedApprovals,
  type EscalatedCall,
  type EscalationPorts,
} from "./escalated-approvals.ts";
import type { PolicyVerdict } from "./evaluate-policy.ts";
import { type GateOutcome, outcomeOf } from "./gate-outcome.ts";
import { answerByMode, asksClassifier, type Classification, decision } from "./permission-mode.ts";
import { SessionGrants } from "./session-grants.ts";
import { offersTreeGrant, type TreeGrants } from "./tree-grants.ts";

/** One prepared call whose policy verdict is known. */
export interface GateRequest extends EscalatedCall {
  readonly toolCallId: ToolCallId;
  readonly tool: string;
  readonly title: string;
  /** Untrusted text for people, such as a diff. */
  readonly detail: string | null;
  readonly fingerprint: Digest;
  readonly operation: ApprovalRequest["operation"];
  readonly verdict: PolicyVerdict;
  readonly trigger: "permission_policy" | "model_tool_approval";
  /** Asks a model and records that it did; rejects only when the log cannot be written. Absent: there is none. */
  classify?(signal: AbortSignal): Promise<Classification>;
}

/** What the gate needs of its session. */
export interface GatePorts extends Pick<EscalationPorts, "attended" | "approvalTimeoutMs"> {
  /** Resolves when the events are recorded and were given to `apply`. */
  append(drafts: EventDraft[]): Promise<unknown>;
  mode(): PermissionMode;
  /** What people have granted to the whole tree; without it nothing is remembered. */
  readonly treeGrants?: TreeGrants;
  /** True where nobody will ever answer: what would wait is rejected at once (S-165). */
  readonly headless: boolean;
}

/** Decides whether the prepared calls of one session may run. */
export class ApprovalGate {
  readonly #ports: GatePorts;
  readonly #book = new ApprovalBook();
  #doomLoop = new DoomLoopCounter();
  /** Those that this session's log holds. */
  readonly grants = new SessionGrants();
  readonly #escalated: EscalatedApprovals;

  constructor(ports: GatePorts) {
    this.#ports = ports;
    this.#escalated = new EscalatedApprovals({
      book: this.#book,
      append: (runId, payloads) => ports.append(drafts(runId, payloads)),
      ...(ports.treeGrants && { treeGrants: ports.treeGrants }),
      attended: () => ports.attended(),
      approvalTimeoutMs: ports.approvalTimeoutMs,
    });
  }

  /**
   * Decides one call in the order of S 6.7. Callers ask for one call at a time, in model order.
   * A refusal is a value; it rejects only when the log cannot be written.
   *
   * @param signal Aborted when the run is cancelled: a waiting approval is then cancelled with it.
   * @param log Holds what is recorded of a decision that nobody is asked for; the caller flushes it before it acts on
   *   the outcome. It is flushed here before a person is asked.
   */
  async decide(
    request: GateRequest,
    signal: AbortSignal,
    log: Pick<RunLog, "hold" | "flush">,
  ): Promise<GateOutcome> {
    const { verdict, trigger } = request;
    if (verdict.effect === "deny") {
      return outcomeOf(decision("rejected", "policy", "policy_denied"), false);
    }
    if (verdict.effect === "allow" && trigger === "permission_policy") {
      return { granted: true, source: "policy", reason: "policy_allowed" };
    }
    if (signal.aborted) {
      return outcomeOf(decision("cancelled", "system", "request_cancelled"), false);
    }

    const approval = createApproval(request, this.#ports.treeGrants !== undefined);
    const approvalId = approval.approval_id;
    const hold = (payloads: EventPayload[]) => log.hold(drafts(request.runId, payloads));
    const repetitions = this.#doomLoop.request(approvalId, request.fingerprint);
    if (repetitions >= DOOM_LOOP_REPETITIONS) {
      const feedback = `the same operation was asked for ${repetitions} times; do something else`;
      const final = decision("rejected", "doom_loop_guard", "doom_loop_detected", feedback);
      hold([
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
      return outcomeOf(final, false);
    }

    const { treeGrants } = this.#ports;
    // A session that began here knows all of its tree, so nothing is waited for.
    if (treeGrants?.loaded === false) await treeGrants.ready();
    const granted = this.#grantFor(approval);
    if (granted !== undefined) {
      const final = decision(
        "approved",
        "tree_grant",
        "tree_grant_matched",
        null,
        granted.grant_id,
      );
      hold([
        { type: "approval_requested", request: approval },
        { type: "approval_evaluated", approval_id: approvalId, decision: final },
        { type: "approval_finalized", approval_id: approvalId, decision: final },
      ]);
      return outcomeOf(final, false);
    }

    const mode = this.#ports.mode();
    const opening: EventPayload[] = [{ type: "approval_requested", request: approval }];
    let classification: Classification | null = null;
    if (request.classify !== undefined && asksClassifier(mode)) {
      hold(opening.splice(0));
      classification = await request.classify(signal);
      if (signal.aborted) {
        const reason_code = "request_cancelled" as const;
        const final = decision("cancelled", "system", reason_code);
        hold([
          { type: "approval_cancelled", approval_id: approvalId, reason_code },
          { type: "approval_finalized", approval_id: approvalId, decision: final },
        ]);
        return outcomeOf(final, false);
      }
    }
    const { headless } = this.#ports;
    const answer = answerByMode({ mode, trigger, classification, headless });
    const { final } = answer;
    opening.push({
      type: "approval_evaluated",
      approval_id: approvalId,
      decision: answer.evaluated,
    });
    if (final === null) {
      await log.flush();
      return this.#escalated.escalate(request, approvalId, opening, signal);
    }
    // Whoever reads the log can tell what a mode turned down from what nobody could have allowed (S 6.6).
    if (final.reason === "auto_approve_n_rejected") {
      opening.push({
        type: "approval_escalated",
        approval_id: approvalId,
        reason_code: "escalated",
      });
    }
    hold([...opening, { type: "approval_finalized", approval_id: approvalId, decision: final }]);
    return outcomeOf(final, answer.escalated);
  }

  /**
   * Takes a person's answer; the first valid one wins, and the same one sent again gets the same result (S-169).
   *
   * @throws CookieError with the first check that fails, `operation_changed` or `prepared_capability_lost` when the
   *   operation no longer is what was asked for, `storage_failed` when the answer could not be recorded.
   */
  respond(response: ApprovalResponse): Promise<ApprovalRecord> {
    return this.#escalated.respond(response);
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
    if (!this.#book.apply(event)) return;
    this.#doomLoop.apply(event);
    this.grants.apply(event);
  }

  /** Forgets the log: what still counts of it is given to `apply` anew. Nothing may be waiting. */
  restart(): void {
    this.#book.clear();
    this.#doomLoop = new DoomLoopCounter();
    this.grants.reset();
  }

  /** Stops the deadlines while a person is attached, and starts them afresh after the last one left (S-270). */
  attachmentChanged(attended: boolean): void {
    this.#escalated.attachmentChanged(attended);
  }

  /** A remembered answer; none for what a plugin asks while it runs (S 6.7), nor while some cannot be read. */
  #grantFor(request: ApprovalRequest): TreeApprovalGrant | undefined {
    const { treeGrants } = this.#ports;
    if (request.trigger !== "permission_policy" || treeGrants?.loaded !== true) return undefined;
    return treeGrants.match(request);
  }

  #withDeadline(record: ApprovalRecord): ApprovalRecord {
    const expiresAt = this.#escalated.expiresAt(record.request.approval_id);
    if (expiresAt === null || isFinal(record)) return record;
    const { request } = record;
    const constraints = { ...request.constraints, expires_at: expiresAt };
    return { ...record, request: { ...request, constraints } };
  }
}

function drafts(runId: RunId, payloads: readonly EventPayload[]): EventDraft[] {
  return payloads.map((payload) => ({ payload, runId }));
}

function createApproval(request: GateRequest, remembers: boolean): ApprovalRequest {
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
    constraints: {
      allow_once: true,
      allow_tree_grant: remembers && offersTreeGrant(request),
      cancellable: true,
      expires_at: null,
    },
  };
}
