import type { SessionId } from "@cookie-agent/sdk/protocol";
import type { ApprovalGate } from "../permission/approval-gate.ts";
import type { TreeGrants } from "../permission/tree-grants.ts";
import type { BudgetCheck } from "../usage/budget-check.ts";
import type { UsageLedger } from "../usage/usage-ledger.ts";
import type { SessionLog } from "./session-log.ts";
import type { SessionPresence } from "./session-presence.ts";
import type { SessionServices } from "./session-services.ts";
import type { SessionState } from "./session-state.ts";

/** What one session consists of, put together by the registry. */
export interface SessionParts {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  readonly services: SessionServices;
  readonly log: SessionLog;
  readonly state: SessionState;
  readonly presence: SessionPresence;
  readonly gate: ApprovalGate;
  readonly ledger: UsageLedger;
  /** Absent: the tree may use what it likes. */
  readonly budget?: BudgetCheck;
  /** Shared by the sessions of a tree. */
  readonly treeGrants: TreeGrants;
}
