import type { SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { BudgetConfig } from "../../../../kernel/src/config/config.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { TreeBudget } from "../../../../kernel/src/usage/tree-budget.ts";
import { RunScript } from "../event/event-fixtures.ts";
import { EventMaker, usageRecord } from "./usage-fixture.ts";

function open(caps: BudgetConfig) {
  const clock = { nowMs: 0 };
  const unpriced: string[] = [];
  const budget = new TreeBudget({
    caps,
    onUnpriced: (model) => unpriced.push(model),
    nowMs: () => clock.nowMs,
  });
  const session = () => {
    const maker = new EventMaker();
    const spend = budget.begin(maker.sessionId);
    const run = new RunScript();
    const at = (timeMs: number, payload: Parameters<EventMaker["at"]>[1]) => {
      clock.nowMs = Math.max(clock.nowMs, timeMs);
      spend.apply(maker.at(timeMs, payload));
    };
    return { at, run, spend };
  };
  return { budget, clock, unpriced, session };
}

describe("what is reached", () => {
  test("tokens are inclusive input and output of every session", () => {
    const { budget, session } = open({ maxTokens: 10 });
    const [root, child] = [session(), session()];
    root.at(0, usageRecord({ input: 4, output: 1 }));
    child.at(0, usageRecord({ input: 4, output: null }));
    expect(budget.check([])).toBeNull();
    child.at(0, usageRecord({ input: null, output: 1 }));
    expect(budget.check([])).toEqual({ cap: "max_tokens", reason: "budget_exceeded:max_tokens" });
  });

  test("cost is exact, and an unpriced request adds nothing and is told once", () => {
    const { budget, session, unpriced } = open({ maxCostUsd: "0.000000000003" });
    const root = session();
    root.at(0, usageRecord({ cost: 2 }));
    root.at(0, usageRecord({ cost: null, model: "custom.a/free" }));
    root.at(0, usageRecord({ cost: null, model: "custom.b/free" }));
    expect(budget.check([])).toBeNull();
    expect(unpriced).toEqual(["custom.a/free"]);
    session().at(0, usageRecord({ cost: 1 }));
    expect(budget.check([])?.reason).toBe("budget_exceeded:max_cost_usd");
  });

  test("without a cap on cost nobody is told of prices", () => {
    const { session, unpriced } = open({ maxTurns: 1 });
    session().at(0, usageRecord());
    expect(unpriced).toEqual([]);
  });

  test("turns are those that were committed; an internal agent's request is none", () => {
    const { budget, session } = open({ maxTurns: 2 });
    const { at, run } = session();
    at(0, run.started().payload);
    at(0, run.turn().payload);
    at(0, usageRecord());
    expect(budget.check([])).toBeNull();
    at(0, run.turn().payload);
    expect(budget.check([])?.reason).toBe("budget_exceeded:max_turns");
  });
});

describe("time during which a run of the tree was active", () => {
  test("counts while the run goes on and stands still between runs", () => {
    const { budget, clock, session } = open({ maxWallMs: 1000 });
    const { at, run } = session();
    at(0, run.started().payload);
    at(600, run.completed().payload);
    clock.nowMs = 100_000;
    expect(budget.check([])).toBeNull();
    at(100_000, run.started().payload);
    clock.nowMs = 100_399;
    expect(budget.check([])).toBeNull();
    clock.nowMs = 100_400;
    expect(budget.check([])?.reason).toBe("budget_exceeded:max_wall");
  });

  test("of runs at the same time counts once", () => {
    const { budget, clock, session } = open({ maxWallMs: 1000 });
    const [root, child] = [session(), session()];
    root.at(0, root.run.started().payload);
    child.at(100, child.run.started().payload);
    child.at(700, child.run.completed().payload);
    clock.nowMs = 999;
    expect(budget.check([])).toBeNull();
    root.at(999, root.run.completed().payload);
    expect(budget.check([])).toBeNull();
    child.at(2000, child.run.started().payload);
    clock.nowMs = 2001;
    expect(budget.check([])?.reason).toBe("budget_exceeded:max_wall");
  });

  test("of a run that a crash cut off ends with its last event", () => {
    const { budget, session } = open({ maxWallMs: 1000 });
    const { at, run } = session();
    at(0, run.started().payload);
    at(300, run.text("half").payload);
    at(999_000, run.interrupted().payload);
    at(999_000, run.started().payload);
    at(999_699, run.completed().payload);
    expect(budget.check([])).toBeNull();
    at(2_000_000, run.started().payload);
    at(2_000_001, run.completed().payload);
    expect(budget.check([])?.reason).toBe("budget_exceeded:max_wall");
  });
});

test("a session whose log is read again does not count twice", () => {
  const { budget } = open({ maxTokens: 3 });
  const sessionId = createId<SessionId>();
  for (let opened = 0; opened < 3; opened += 1) {
    const maker = new EventMaker(sessionId);
    budget.begin(sessionId).apply(maker.at(0, usageRecord({ input: 1, output: 1 })));
  }
  expect(budget.check([])).toBeNull();
});
