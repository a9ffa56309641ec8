import type { EventPayload } from "@cookie-agent/sdk/protocol";
/** The cap of `[budget]` that was reached. */
export type BudgetCap = "max_cost_usd" | "max_tokens" | "max_turns" | "max_wall";

export interface BudgetExceeded {
  readonly cap: BudgetCap;
  /** As `run_cancelled` records it. */
  readonly reason: `budget_exceeded:${BudgetCap}`;
}

/** What was used and is not recorded yet. */
export type Unrecorded = readonly { readonly payload: EventPayload }[];

/** To be asked before each request to a model, on behalf of a run or of an internal agent (S-261). */
export interface BudgetCheck {
  /**
   * Null: the request may be sent.
   * @param held Of whoever asks (`RunLog.held`).
   */
  check(held: Unrecorded): BudgetExceeded | null;
}
