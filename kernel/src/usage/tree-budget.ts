import type { SessionId } from "@cookie-agent/sdk/protocol";
import type { BudgetConfig } from "../config/config.ts";
import { parseUsdAmount } from "../config/usd-amount.ts";
import { ActiveTime } from "./active-time.ts";
import type { BudgetCap, BudgetCheck, BudgetExceeded, Unrecorded } from "./budget-check.ts";
import { SessionSpend } from "./session-spend.ts";

export interface TreeBudgetOptions {
  readonly caps: BudgetConfig;
  /** Told once when a request has no price although cost is capped. */
  onUnpriced(model: string): void;
  readonly nowMs?: () => number;
}

/** What a tree may use, and what its sessions have used (S 5.11). */
export class TreeBudget implements BudgetCheck {
  readonly #caps: BudgetConfig;
  readonly #maxCostPicoUsd: bigint | undefined;
  readonly #onUnpriced: (model: string) => void;
  readonly #nowMs: () => number;
  readonly #sessions = new Map<SessionId, SessionSpend>();
  #unpricedTold = false;
  /** The spans of several sessions put together, until one of them changes. */
  #union: { readonly changes: number; readonly active: ActiveTime } | undefined;

  constructor({ caps, onUnpriced, nowMs = clockMs }: TreeBudgetOptions) {
    this.#caps = caps;
    this.#maxCostPicoUsd =
      caps.maxCostUsd === undefined ? undefined : parseUsdAmount(caps.maxCostUsd);
    this.#onUnpriced = onUnpriced;
    this.#nowMs = nowMs;
  }

  /** An empty account for a session whose log is read from its beginning; in place of an earlier one. */
  begin(sessionId: SessionId): SessionSpend {
    const spend = new SessionSpend((model) => this.#noteUnpriced(model));
    this.#sessions.set(sessionId, spend);
    this.#union = undefined;
    return spend;
  }

  has(sessionId: SessionId): boolean {
    return this.#sessions.has(sessionId);
  }

  check(held: Unrecorded): BudgetExceeded | null {
    const { maxTokens, maxTurns, maxWallMs } = this.#caps;
    const maxCost = this.#maxCostPicoUsd;
    let costPicoUsd = 0n;
    let tokens = 0;
    let turns = 0;
    // Its price is told of when it is recorded.
    const unrecorded = new SessionSpend(() => undefined);
    for (const { payload } of held) unrecorded.take(payload);
    for (const spend of [unrecorded, ...this.#sessions.values()]) {
      costPicoUsd += spend.costPicoUsd;
      tokens += spend.tokens;
      turns += spend.turns;
    }
    if (maxCost !== undefined && costPicoUsd >= maxCost) return exceeded("max_cost_usd");
    if (maxTokens !== undefined && tokens >= maxTokens) return exceeded("max_tokens");
    if (maxTurns !== undefined && turns >= maxTurns) return exceeded("max_turns");
    if (maxWallMs !== undefined && this.#wallMs() >= maxWallMs) return exceeded("max_wall");
    return null;
  }

  /** Time during which at least one run of the tree was active. */
  #wallMs(): number {
    let runningSinceMs: number | null = null;
    for (const { runStartedMs } of this.#sessions.values()) {
      if (runStartedMs === null) continue;
      runningSinceMs = Math.min(runStartedMs, runningSinceMs ?? runStartedMs);
    }
    return this.#activeTime().totalMs(runningSinceMs, this.#nowMs());
  }

  #activeTime(): ActiveTime {
    const all = [...this.#sessions.values()].map(({ active }) => active);
    const [only] = all;
    if (only !== undefined && all.length === 1) return only;
    const changes = all.reduce((sum, active) => sum + active.changes, 0);
    if (this.#union?.changes === changes) return this.#union.active;
    const active = new ActiveTime();
    for (const { fromMs, toMs } of all.flatMap(({ spans }) => spans)) active.add(fromMs, toMs);
    this.#union = { changes, active };
    return active;
  }

  #noteUnpriced(model: string): void {
    if (this.#maxCostPicoUsd === undefined || this.#unpricedTold) return;
    this.#unpricedTold = true;
    this.#onUnpriced(model);
  }
}

/** A clock that is set back must not make a run's time stand still. */
function clockMs(): number {
  return Math.max(Date.now(), performance.timeOrigin + performance.now());
}

function exceeded(cap: BudgetCap): BudgetExceeded {
  return { cap, reason: `budget_exceeded:${cap}` };
}
