import type { ApprovalDecision, DecisionReason, DecisionSource } from "@cookie-agent/sdk/protocol";

/** What the gate says to one call. */
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

/** What the last decision on a call comes to. */
export function outcomeOf(final: ApprovalDecision, escalated: boolean): GateOutcome {
  const { source, reason, feedback } = final;
  if (final.status === "approved") return { granted: true, source, reason };
  return { granted: false, source, reason, feedback, escalated };
}
