import type { SessionId } from "@cookie-agent/sdk/protocol";
import type { BudgetConfig } from "../config/config.ts";
import type { ArchivedSession, UsageArchive } from "../store/usage-archive.ts";
import type { Logger } from "../support/logger.ts";
import { TreeBudget } from "../usage/tree-budget.ts";
import { foldLedger } from "./fold-ledger.ts";

export interface TreeBudgetsOptions {
  readonly caps: BudgetConfig;
  readonly archive: UsageArchive;
  readonly logger: Logger;
}

/** The budget of each tree that is written here. */
export class TreeBudgets {
  readonly #options: TreeBudgetsOptions;
  readonly #trees = new Map<SessionId, TreeBudget>();
  readonly #loading = new Map<SessionId, Promise<void>>();

  constructor(options: TreeBudgetsOptions) {
    this.#options = options;
  }

  of(rootId: SessionId): TreeBudget {
    const known = this.#trees.get(rootId);
    if (known !== undefined) return known;
    const budget = new TreeBudget({
      caps: this.#options.caps,
      onUnpriced: (model) => this.#noteUnpriced(model),
    });
    this.#trees.set(rootId, budget);
    return budget;
  }

  /** Counts what the other sessions of the tree have used already; they are not open here (S-261). */
  load(rootId: SessionId): Promise<void> {
    let loading = this.#loading.get(rootId);
    if (loading === undefined) {
      loading = this.#count(rootId, this.of(rootId));
      this.#loading.set(rootId, loading);
      loading.catch(() => this.#loading.delete(rootId));
    }
    return loading;
  }

  async #count(rootId: SessionId, budget: TreeBudget): Promise<void> {
    const sessions = await this.#options.archive.tree(rootId, (error) =>
      this.#noteMissing(rootId, error),
    );
    for (const session of sessions) {
      if (budget.has(session.sessionId)) continue;
      await countLog(session, budget).catch((error: unknown) =>
        this.#noteMissing(session.sessionId, error),
      );
    }
  }

  #noteMissing(sessionId: SessionId, error: unknown): void {
    this.#options.logger.log("warn", "a session is missing from the budget of its tree", {
      session: sessionId,
      error: error instanceof Error ? error.message : String(error),
    });
  }

  #noteUnpriced(model: string): void {
    this.#options.logger.log(
      "warn",
      `budget.max_cost_usd does not limit ${model}: its price is not known; ` +
        `state it as [pricing.models."${model}"]`,
      { notice: true },
    );
  }
}

async function countLog(session: ArchivedSession, budget: TreeBudget): Promise<void> {
  const { sessionId } = session;
  const ledger = await foldLedger(session, () => budget.begin(sessionId));
  ledger.settle();
}
