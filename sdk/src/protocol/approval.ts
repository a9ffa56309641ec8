import * as z from "zod";
import {
  ApprovalId,
  boundedText,
  controlFreeText,
  Digest,
  SessionId,
  Timestamp,
  TreeApprovalGrantId,
} from "./scalars.ts";
import { PermissionAction, PermissionEffect, ResourceBoundary, ResourceLifetime } from "./tool.ts";

export const PermissionMode = z.enum([
  "auto_approve",
  "auto_approve_n",
  "auto_approve_y",
  "ask",
  "yolo",
]);
export type PermissionMode = z.infer<typeof PermissionMode>;

export const RuleSource = z.enum(["session_overlay", "agent_document", "guard", "default"]);
export type RuleSource = z.infer<typeof RuleSource>;

/** One rule of an agent document or an overlay. */
export const PermissionRule = z.object({
  action: PermissionAction,
  resource: controlFreeText(1, 4096),
  effect: PermissionEffect,
});
export type PermissionRule = z.infer<typeof PermissionRule>;

/** An overlay rule; one from a flag never beats an explicit deny of the document (S-164). */
export const OverlayRule = PermissionRule.extend({ source: z.enum(["user", "flag"]) });
export type OverlayRule = z.infer<typeof OverlayRule>;

export const OperationCapability = z.object({
  action: PermissionAction,
  operation: boundedText(1, 256),
});
export type OperationCapability = z.infer<typeof OperationCapability>;

export const OperationResource = z.object({
  capability: boundedText(1, 256),
  /** `<kind>:<sha256 of the label>`. */
  canonical: z.string().regex(/^(?!fd:|temp:)[a-z0-9._:-]{1,512}$/),
  binding_digest: Digest,
  binding_lifetime: ResourceLifetime,
  boundary: ResourceBoundary,
  source: z.enum(["primary_operation", "secondary_operation", "model_request", "doom_loop_guard"]),
});
export type OperationResource = z.infer<typeof OperationResource>;

/** One label that was judged, with the rule that decided (S 6.3). */
export const PermissionEvaluation = z.object({
  action: PermissionAction,
  /** Null: a name-only check. */
  label: boundedText(1, 4096).nullable(),
  effect: PermissionEffect,
  /** The deciding pattern; null when nothing matched. */
  pattern: boundedText(1, 4096).nullable(),
  source: RuleSource,
});
export type PermissionEvaluation = z.infer<typeof PermissionEvaluation>;

export const ApprovalStatus = z.enum([
  "pending",
  "escalated",
  "approved",
  "rejected",
  "cancelled",
  "expired",
]);
export type ApprovalStatus = z.infer<typeof ApprovalStatus>;

export const DecisionSource = z.enum([
  "policy",
  "model",
  "internal_agent",
  "permission_mode",
  "tree_grant",
  "user",
  "doom_loop_guard",
  "system",
]);
export type DecisionSource = z.infer<typeof DecisionSource>;

export const DecisionReason = z.enum([
  "policy_allowed",
  "policy_denied",
  "policy_requires_approval",
  "model_requested",
  "internal_agent_allowed",
  "internal_agent_denied",
  "auto_approve_n_rejected",
  "auto_approve_y_approved",
  "yolo_approved",
  "tree_grant_matched",
  "user_approved_once",
  "user_approved_tree",
  "user_rejected",
  "user_cancelled",
  "request_cancelled",
  "doom_loop_detected",
  "constraint_violation",
  "operation_changed",
  "prepared_capability_lost",
  "unsupported_platform",
  "approval_expired",
  "escalated",
  "unattended",
  "system_error",
]);
export type DecisionReason = z.infer<typeof DecisionReason>;

const GRANT_REASONS: readonly DecisionReason[] = ["user_approved_tree", "tree_grant_matched"];

/** Who decided what, by which rule (S 6.8). */
export const ApprovalDecision = z
  .object({
    status: ApprovalStatus,
    source: DecisionSource,
    reason: DecisionReason,
    feedback: boundedText(1, 4096).nullable(),
    /** The grant that was given or that matched; there exactly with the reasons that say so (S-168). */
    tree_grant_id: TreeApprovalGrantId.optional(),
  })
  .refine(
    ({ reason, tree_grant_id: grant }) => GRANT_REASONS.includes(reason) === (grant !== undefined),
    { error: "a tree_grant_id goes with user_approved_tree and tree_grant_matched only" },
  );
export type ApprovalDecision = z.infer<typeof ApprovalDecision>;

export const ApprovalRequest = z.object({
  approval_id: ApprovalId,
  revision: z.int().min(1),
  trigger: z.enum(["permission_policy", "model_tool_approval", "internal_agent", "doom_loop"]),
  tool_call_id: z.string(),
  tool: z.string(),
  operation_fingerprint: Digest,
  operation: z.object({
    normalized_arguments_digest: Digest,
    capabilities: z.array(OperationCapability).min(1).max(256),
    resources: z.array(OperationResource).max(256),
    execution_context_digest: Digest,
  }),
  evaluations: z.array(PermissionEvaluation).min(1).max(256),
  title: boundedText(1, 1024),
  detail: boundedText(0, 64 * 1024).nullable(),
  constraints: z.object({
    allow_once: z.boolean(),
    allow_tree_grant: z.boolean(),
    cancellable: z.boolean(),
    expires_at: Timestamp.nullable(),
  }),
});
export type ApprovalRequest = z.infer<typeof ApprovalRequest>;

/** A person's answer that holds for the same operation in every session of a tree (S 6.10). */
export const TreeApprovalGrant = z.object({
  grant_id: TreeApprovalGrantId,
  root_session_id: SessionId,
  /** The approval whose answer this is. */
  approval_id: ApprovalId,
  operation_fingerprint: Digest,
  capabilities: z.array(OperationCapability).min(1).max(256),
  resources: z.array(OperationResource).min(1).max(256),
  created_at: Timestamp,
});
export type TreeApprovalGrant = z.infer<typeof TreeApprovalGrant>;

export const UserDecision = z.enum(["approve_once", "approve_tree", "reject", "cancel"]);
export type UserDecision = z.infer<typeof UserDecision>;

/** An approval as clients list it. */
export const ApprovalRecord = z.object({
  session_id: z.string(),
  request: ApprovalRequest,
  status: ApprovalStatus,
  internal_decision: ApprovalDecision.nullable(),
  user_decision: UserDecision.nullable(),
  final_decision: ApprovalDecision.nullable(),
});
export type ApprovalRecord = z.infer<typeof ApprovalRecord>;
