import type {
  ApprovalId,
  ApprovalRecord,
  EventPayload,
  EventPayloadOf,
  StoredEvent,
} from "@cookie-agent/sdk/protocol";

/** Finished approvals that stay answerable to a repeated response and to `approval.list`. */
const MAX_FINISHED = 256;

type UserDecisionRecorded = EventPayloadOf<"approval_user_decision_recorded">;

/**
 * The approvals of one session as a fold of its events (S 6.9). An event that does not fit its approval's state is
 * left out: the log is read best-effort, and what writes it has checked it.
 */
export class ApprovalBook {
  readonly #records = new Map<ApprovalId, ApprovalRecord>();
  readonly #responses = new Map<string, UserDecisionRecorded>();
  readonly #requestedAt = new Map<ApprovalId, number>();
  readonly #finished: ApprovalId[] = [];
  #rulesChangedAt = 0;
  #lastSeq = 0;

  /** True when the event was new. */
  apply(event: StoredEvent): boolean {
    if (event.seq <= this.#lastSeq) return false;
    this.#lastSeq = event.seq;
    const { payload } = event;
    if (payload.type === "session_permission_overlay_set") this.#rulesChangedAt = event.seq;
    if (payload.type === "approval_requested") {
      this.#requestedAt.set(payload.request.approval_id, event.seq);
      this.#records.set(payload.request.approval_id, {
        session_id: event.session_id,
        request: payload.request,
        status: "pending",
        internal_decision: null,
        user_decision: null,
        final_decision: null,
      });
    } else if (payload.type === "session_reverted") {
      for (const [id, record] of this.#records) if (!isFinal(record)) this.#records.delete(id);
    } else if ("approval_id" in payload) {
      this.#advance(payload);
    }
    return true;
  }

  clear(): void {
    this.#records.clear();
    this.#responses.clear();
    this.#requestedAt.clear();
    this.#finished.length = 0;
    this.#lastSeq = 0;
    this.#rulesChangedAt = 0;
  }

  get(approvalId: ApprovalId): ApprovalRecord | undefined {
    return this.#records.get(approvalId);
  }

  all(): ApprovalRecord[] {
    return [...this.#records.values()];
  }

  /** The decision that a client sent under this idempotency key. */
  responseOf(clientResponseId: string): UserDecisionRecorded | undefined {
    return this.#responses.get(clientResponseId);
  }

  /** True when the session's own rules changed after the approval was asked for (S-170). */
  rulesChangedSince(approvalId: ApprovalId): boolean {
    return this.#rulesChangedAt > (this.#requestedAt.get(approvalId) ?? 0);
  }

  #advance(payload: Extract<EventPayload, { approval_id: ApprovalId }>): void {
    const record = this.#records.get(payload.approval_id);
    if (record === undefined || isFinal(record)) return;
    const next = advanceRecord(record, payload);
    this.#records.set(payload.approval_id, next);
    if (payload.type === "approval_user_decision_recorded") {
      this.#responses.set(payload.client_response_id, payload);
    }
    if (isFinal(next)) this.#retire(payload.approval_id);
  }

  #retire(approvalId: ApprovalId): void {
    this.#finished.push(approvalId);
    if (this.#finished.length <= MAX_FINISHED) return;
    const oldest = this.#finished.shift();
    if (oldest === undefined) return;
    this.#records.delete(oldest);
    this.#requestedAt.delete(oldest);
    for (const [key, response] of this.#responses) {
      if (response.approval_id === oldest) this.#responses.delete(key);
    }
  }
}

export function isFinal(record: ApprovalRecord): boolean {
  return record.final_decision !== null;
}

function advanceRecord(
  record: ApprovalRecord,
  payload: Extract<EventPayload, { approval_id: ApprovalId }>,
): ApprovalRecord {
  switch (payload.type) {
    case "approval_evaluated":
      return { ...record, internal_decision: payload.decision };
    case "approval_escalated":
      return { ...record, status: "escalated" };
    case "approval_user_decision_recorded":
      return { ...record, user_decision: payload.decision };
    case "approval_cancelled": {
      const expired = payload.reason_code === "approval_expired";
      return { ...record, status: expired ? "expired" : "cancelled" };
    }
    case "approval_finalized":
      return { ...record, status: payload.decision.status, final_decision: payload.decision };
    default:
      return record;
  }
}
