import type { RunId } from "@cookie-agent/sdk/protocol";
import type { RunLog } from "../event/run-log.ts";
import type { HookSite } from "../plugin/hook-site.ts";
import type { DispatchStages } from "../tool/dispatch-stages.ts";
import type { BudgetCheck } from "../usage/budget-check.ts";
import type { AdmittedRun } from "./admit-run.ts";
import type { ContextEstimator } from "./context-estimator.ts";
import type { History } from "./history.ts";

/** A session whose conversation can be summarized: idle, or between two requests of its run. */
export interface CompactionScene {
  /** Null: outside any run. */
  readonly runId: RunId | null;
  readonly site: HookSite;
  readonly history: History;
  readonly estimator: ContextEstimator;
  readonly run: AdmittedRun;
  /** Of the chain's entry that is used now. */
  readonly chainIndex: number;
  /** Whatever it holds is recorded first. */
  readonly log: RunLog;
  readonly stages: Pick<DispatchStages, "artifacts" | "hooks" | "policy">;
  /** Canonical; also the working directory of calls. */
  readonly workspaceRoot: string;
  /** Undefined: no budget is configured. */
  readonly budget: BudgetCheck | undefined;
  lastSeq(): number;
  inputThroughSeq(): number;
}
