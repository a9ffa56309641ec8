import type {
  ApprovalDecision,
  ApprovalRequest,
  PermissionMode,
  TreeApprovalGrantId,
} from "@cookie-agent/sdk/protocol";

/** Every process starts in this mode; a mode is never stored (S 6.6). */
export const DEFAULT_PERMISSION_MODE: PermissionMode = "auto_approve";

/** What a model that may decide approvals makes of a call; `ask` leaves it to whoever the mode names. */
export type Classification = "allow" | "deny" | "ask";

/** What the mode makes of an approval: the evaluation that is recorded, and the end of it unless a person decides. */
export interface ModeAnswer {
  readonly evaluated: ApprovalDecision;
  /** Null: escalated to the user. */
  readonly final: ApprovalDecision | null;
  /** True when neither rules nor classifier could settle it. */
  readonly escalated: boolean;
}

export interface ModeQuestion {
  readonly mode: PermissionMode;
  readonly trigger: ApprovalRequest["trigger"];
  /** Null: there is no classifier, or the mode asks none. */
  readonly classification: Classification | null;
  readonly headless: boolean;
}

/** True of the modes that let a model decide first (S 6.6). */
export function asksClassifier(mode: PermissionMode): boolean {
  return mode === "auto_approve" || mode === "auto_approve_n" || mode === "auto_approve_y";
}

/**
 * Answers for the mode (S 6.6, 6.7). A headless run has nobody to escalate to, so what would wait for a person is
 * rejected at once (S-165).
 */
export function answerByMode(question: ModeQuestion): ModeAnswer {
  const { mode, classification, headless } = question;
  if (mode === "yolo") return settled(decision("approved", "policy", "yolo_approved"));
  if (classification === "allow") {
    return settled(decision("approved", "internal_agent", "internal_agent_allowed"));
  }
  if (classification === "deny") {
    const feedback = "the approval classifier refused this call; find another way or ask the user";
    return settled(decision("rejected", "internal_agent", "internal_agent_denied", feedback));
  }
  const evaluated = escalation(question);
  if (mode === "auto_approve_y") {
    const final = decision("approved", "permission_mode", "auto_approve_y_approved");
    return { evaluated, final, escalated: true };
  }
  if (mode === "auto_approve_n") {
    const feedback =
      "the permission mode auto_approve_n rejects what would need a person's approval";
    const final = decision("rejected", "permission_mode", "auto_approve_n_rejected", feedback);
    return { evaluated, final, escalated: true };
  }
  if (!headless) return { evaluated, final: null, escalated: true };
  const feedback = "nobody is attached who could approve this call";
  const final = decision("rejected", "system", "unattended", feedback);
  return { evaluated, final, escalated: true };
}

function settled(final: ApprovalDecision): ModeAnswer {
  return { evaluated: final, final, escalated: false };
}

/** Why somebody else has to decide. */
function escalation({ trigger, classification }: ModeQuestion): ApprovalDecision {
  if (classification !== null) return decision("escalated", "internal_agent", "escalated");
  return trigger === "model_tool_approval"
    ? decision("escalated", "model", "model_requested")
    : decision("escalated", "policy", "policy_requires_approval");
}

export function decision(
  status: ApprovalDecision["status"],
  source: ApprovalDecision["source"],
  reason: ApprovalDecision["reason"],
  feedback: string | null = null,
  grantId?: TreeApprovalGrantId,
): ApprovalDecision {
  return { status, source, reason, feedback, ...(grantId && { tree_grant_id: grantId }) };
}
