import type { ApprovalDecision, ApprovalRequest, PermissionMode } from "@cookie-agent/sdk/protocol";

/** Every process starts in this mode; a mode is never stored (S 6.6). */
export const DEFAULT_PERMISSION_MODE: PermissionMode = "auto_approve";

/** What the mode makes of an approval: the evaluation that is recorded, and the end of it unless a person decides. */
export interface ModeAnswer {
  readonly evaluated: ApprovalDecision;
  /** Null: escalated to the user. */
  readonly final: ApprovalDecision | null;
}

/**
 * Answers for the mode, without a classifier (S 6.6, 6.7). A headless run has nobody to escalate to, so what would
 * wait for a person is rejected at once (S-165).
 */
export function answerByMode(
  mode: PermissionMode,
  trigger: ApprovalRequest["trigger"],
  headless: boolean,
): ModeAnswer {
  if (mode === "yolo") {
    const approved = decision("approved", "policy", "yolo_approved");
    return { evaluated: approved, final: approved };
  }
  const evaluated =
    trigger === "model_tool_approval"
      ? decision("escalated", "model", "model_requested")
      : decision("escalated", "policy", "policy_requires_approval");
  if (mode === "auto_approve_y") {
    const final = decision("approved", "permission_mode", "auto_approve_y_approved");
    return { evaluated, final };
  }
  if (mode === "auto_approve_n") {
    const feedback =
      "the permission mode auto_approve_n rejects what would need a person's approval";
    const final = decision("rejected", "permission_mode", "auto_approve_n_rejected", feedback);
    return { evaluated, final };
  }
  if (!headless) return { evaluated, final: null };
  const feedback = "nobody is attached who could approve this call";
  return { evaluated, final: decision("rejected", "system", "unattended", feedback) };
}

export function decision(
  status: ApprovalDecision["status"],
  source: ApprovalDecision["source"],
  reason: ApprovalDecision["reason"],
  feedback: string | null = null,
): ApprovalDecision {
  return { status, source, reason, feedback };
}
