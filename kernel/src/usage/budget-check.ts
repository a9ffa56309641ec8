import type { EventDraft } from "../event/event-draft.ts";

/** The cap of `[budget]` that was reached. */
export type BudgetCap = "max_cost_usd" | "max_tokens" | "max_turns" | "max_wall";

export interface BudgetExceeded {
  readonly cap: BudgetCap;
  /** As `run_cancelled` records it. */
  readonly reason: `budget_exceeded:${BudgetCap}`;
}

/** To be asked before each request to a model, on behalf of a run or of an internal agent (S-261). */
export interface BudgetCheck {
  /**
   * Null: the request may be sent.
   * @param held What whoever asks has used and not recorded yet (`RunLog.held`).
   */
  check(held: readonly EventDraft[]): BudgetExceeded | null;
}
