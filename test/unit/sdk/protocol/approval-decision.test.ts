import { ApprovalDecision, DecisionReason, EVENT_PAYLOADS } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";

const GRANT = "0198c000-0000-7000-8000-000000000001";
const WITH_GRANT = ["user_approved_tree", "tree_grant_matched"];

test.for(DecisionReason.options)(
  "[S-168] a decision with the reason %s names a grant or does not",
  (reason) => {
    const decision = { status: "approved", source: "user", reason, feedback: null };
    const accepts = (value: object) => ApprovalDecision.safeParse(value).success;
    expect(accepts({ ...decision, tree_grant_id: GRANT })).toBe(WITH_GRANT.includes(reason));
    expect(accepts(decision)).toBe(!WITH_GRANT.includes(reason));
    const event = { type: "approval_finalized", approval_id: GRANT };
    const finalized = { ...event, decision: { ...decision, tree_grant_id: GRANT } };
    expect(EVENT_PAYLOADS.approval_finalized.safeParse(finalized).success).toBe(
      WITH_GRANT.includes(reason),
    );
  },
);
