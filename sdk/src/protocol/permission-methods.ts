import * as z from "zod";
import { PermissionMode, PermissionRule, RuleSource } from "./approval.ts";
import { EffectivePermission } from "./client-methods.ts";
import { RunSelection } from "./event.ts";
import { TrustTier } from "./manifest.ts";
import { request } from "./method.ts";
import {
  AgentId,
  boundedText,
  Count,
  JsonObject,
  SessionId,
  TreeApprovalGrantId,
  WildcardPattern,
} from "./scalars.ts";
import { PermissionAction, PermissionEffect, ResourceLifetime } from "./tool.ts";

/** Removes the session's own rule for exactly this action and resource; without one nothing changes. */
export const SessionPermissionClear = request(
  "session.permission.clear",
  () =>
    z.strictObject({
      session_id: SessionId,
      action: PermissionAction,
      resource: WildcardPattern,
    }),
  () => z.object({ permissions: z.array(EffectivePermission) }),
);

/** A rule that matches a label. */
export const RuleCandidate = z.object({
  resource: z.string(),
  effect: PermissionEffect,
  source: RuleSource,
  /** Who set a rule of the session; absent for every other one. */
  set_by: z.enum(["user", "flag"]).optional(),
  /** What decides between matching rules: more literal characters, then fewer wildcards, then the later one. */
  literals: Count,
  wildcards: Count,
  /** Where the document has the rule; absent where that is not known. */
  place: z.object({ path: z.string(), line: z.int().min(1) }).optional(),
});
export type RuleCandidate = z.infer<typeof RuleCandidate>;

/** One label as the rules judge it: the decision trace of S 6.3. */
export const ExplainedLabel = z.object({
  /** Null: a check by name alone, for which only `*` rules count. */
  label: z.string().nullable(),
  effect: PermissionEffect,
  /** The rule that decides; null when none matches. */
  decided_by: RuleCandidate.nullable(),
  /** Why that one, in words. */
  precedence_reason: z.string(),
  /** Every rule that matches, the deciding one among them. */
  candidates: z.array(RuleCandidate),
});
export type ExplainedLabel = z.infer<typeof ExplainedLabel>;

/** One thing that the call would do. */
export const ExplainedResource = z.object({
  action: PermissionAction,
  kind: z.enum(["text", "path", "command"]),
  label: z.string().nullable(),
  lifetime: ResourceLifetime,
  effect: PermissionEffect,
  /** What of the resource decided: itself or, of a command, those of its labels that count. */
  labels: z.array(ExplainedLabel),
  /** How the labels of a command came to its answer; absent for all else. */
  command_reason: z.string().optional(),
});
export type ExplainedResource = z.infer<typeof ExplainedResource>;

export const PermissionExplanation = z.object({
  tool: z.string(),
  plugin: z.string(),
  tier: TrustTier,
  agent: AgentId,
  /** False: the agent is not offered the tool, because no rule for its action allows or asks. */
  visible: z.boolean(),
  effect: PermissionEffect,
  resources: z.array(ExplainedResource),
  mode: PermissionMode,
  /** What becomes of the call: `asks` where a model or a person is asked first. */
  outcome: z.enum(["runs", "asks", "refused"]),
  outcome_reason: z.string(),
  /** A person could answer for the whole tree of sessions. */
  allow_tree_grant: z.boolean(),
  /** The remembered answer that lets it run. */
  tree_grant_id: TreeApprovalGrantId.optional(),
});
export type PermissionExplanation = z.infer<typeof PermissionExplanation>;

/**
 * Prepares a call as a run would and says which rules decide about it; it is not made, and nothing is recorded. Fails
 * as the preparation fails: `invalid_arguments`, `prepare_failed`, and what the tool itself says.
 */
export const SessionPermissionExplain = request(
  "session.permission.explain",
  () =>
    z.strictObject({
      session_id: SessionId,
      tool: boundedText(1, 512),
      arguments: JsonObject,
      /** Absent: what a next run of the session would use. */
      selection: RunSelection.optional(),
      /** Absent: the mode that the session is in. */
      mode: PermissionMode.optional(),
      /** Taken as if they were set from flags, beside the session's own. */
      rules: z.array(PermissionRule).max(256).optional(),
    }),
  () => z.object({ explanation: PermissionExplanation }),
);
