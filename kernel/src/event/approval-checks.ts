import type { EventPayload, RunId } from "@cookie-agent/sdk/protocol";
import { requireRule } from "./require-rule.ts";
import type { UndoJournal } from "./undo-journal.ts";

type Stage = "requested" | "detected" | "evaluated" | "escalated" | "answered" | "cancelled";

interface OpenApproval {
  readonly runId: RunId;
  readonly stage: Stage;
}

/** The stages each event may follow, and the one it leads to; null closes the approval (S 6.9). */
const TRANSITIONS: Readonly<Record<string, { from: readonly Stage[]; to: Stage | null }>> = {
  approval_doom_loop_detected: { from: ["requested"], to: "detected" },
  approval_evaluated: { from: ["requested", "detected"], to: "evaluated" },
  approval_escalated: { from: ["requested", "evaluated"], to: "escalated" },
  approval_user_decision_recorded: { from: ["escalated"], to: "answered" },
  approval_cancelled: {
    // Again when a crash came between it and the final event.
    from: ["requested", "detected", "evaluated", "escalated", "answered", "cancelled"],
    to: "cancelled",
  },
  approval_finalized: {
    from: ["requested", "detected", "evaluated", "escalated", "answered", "cancelled"],
    to: null,
  },
};

/** The order of approval events: asked for once, within one run, finalized once. */
export class ApprovalChecks {
  readonly #journal: UndoJournal;
  readonly #open = new Map<string, OpenApproval>();

  constructor(journal: UndoJournal) {
    this.#journal = journal;
  }

  check(payload: EventPayload, runId: RunId): void {
    if (payload.type === "approval_requested") {
      const isNew = !this.#open.has(payload.request.approval_id);
      requireRule(isNew, payload, "the approval is already open");
      return;
    }
    if (payload.type === "tree_approval_grant_committed") {
      const answered = this.#open.get(payload.grant.approval_id);
      const isAnswer = answered?.runId === runId && answered.stage === "answered";
      requireRule(isAnswer, payload, "no answered approval of its run grants it");
      return;
    }
    const transition = TRANSITIONS[payload.type];
    if (transition === undefined || !("approval_id" in payload)) return;
    const approval = this.#open.get(payload.approval_id);
    requireRule(approval?.runId === runId, payload, "no such approval is open in its run");
    requireRule(
      transition.from.includes(approval.stage),
      payload,
      `the approval is already ${approval.stage}`,
    );
    if (payload.type === "approval_finalized") {
      const { status } = payload.decision;
      const withdrawn = status === "cancelled" || status === "expired";
      requireRule(
        withdrawn === (approval.stage === "cancelled"),
        payload,
        "its status does not follow from the approval",
      );
    }
  }

  advance(payload: EventPayload, runId: RunId): void {
    if (payload.type === "approval_requested") {
      this.#journal.set(this.#open, payload.request.approval_id, { runId, stage: "requested" });
      return;
    }
    const transition = TRANSITIONS[payload.type];
    if (transition === undefined || !("approval_id" in payload)) return;
    if (transition.to === null) this.#journal.remove(this.#open, payload.approval_id);
    else this.#journal.set(this.#open, payload.approval_id, { runId, stage: transition.to });
  }
}
