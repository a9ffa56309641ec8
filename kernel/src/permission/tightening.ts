import type { PermissionAction, PermissionEffect } from "@cookie-agent/sdk/protocol";
import {
  type CompiledRule,
  compileLayers,
  decideByLayers,
  foldCase,
  GUARD_EXEMPT,
  judgeOf,
  type Policy,
  type RuleLayers,
} from "./compile-rules.ts";
import { STRICTNESS } from "./judge-command.ts";
import { compilePattern, toCodePoints } from "./match-pattern.ts";
import { PatternAutomaton } from "./pattern-automaton.ts";

/** Steps after which a change counts as tightening without a proof; rules that people write take a few thousand. */
const MAX_STEPS = 2_000_000;
/** Stands for every character that no rule spells. */
const OTHER = 0x10_ffff;
const ARTIFACTS = "artifact://";

/** The one rule in which two policies differ. */
export interface RuleChange {
  readonly action: PermissionAction;
  readonly resource: string;
}

/**
 * True when some label gets a stricter answer after the change than before it (S 6.11): allow < ask < deny.
 *
 * Only labels of the changed pattern can. All of them that the rules can tell apart are tried: the patterns of the
 * action are followed together, one character after the other.
 */
export function isTightening(before: Policy, after: Policy, change: RuleChange): boolean {
  if (cannotTighten(before, after, change)) return false;
  const strictness = (policy: Policy, label: string | null) =>
    STRICTNESS[judgeOf(policy, change.action)(label).effect];
  const tightens = (label: string | null) => strictness(after, label) > strictness(before, label);
  if (tightens(null) || tightens(".")) return true;
  return startsOf(change.action, after.workspaceRoot).some((start) =>
    new LabelSearch(before, after, change).finds(start),
  );
}

/** What a person allows, and a deny that is gone, can only loosen. */
function cannotTighten(before: Policy, after: Policy, change: RuleChange): boolean {
  const ruleOf = ({ overlayRules }: Policy) =>
    overlayRules.find(
      ({ action, resource }) => action === change.action && resource === change.resource,
    );
  const now = ruleOf(after);
  if (now === undefined) return ruleOf(before)?.effect === "deny";
  return now.effect === "allow" && now.source === "user";
}

/** A kind of label: what it begins with, and what stands before it for patterns with `${workspace_dir}`. */
interface Start {
  readonly begins: string;
  readonly absolute: boolean | null;
  /** Null: such patterns never match. */
  readonly workspacePrefix: string | null;
}

function startsOf(action: PermissionAction, workspaceRoot: string): Start[] {
  if (action !== "read" && action !== "write") {
    return [{ begins: "", absolute: null, workspacePrefix: "" }];
  }
  const root = workspaceRoot.replace(/\/+$/, "");
  return [
    { begins: "", absolute: false, workspacePrefix: `${root}/` },
    { begins: "", absolute: true, workspacePrefix: "" },
    { begins: ARTIFACTS, absolute: null, workspacePrefix: null },
  ];
}

interface Tracked {
  readonly automaton: PatternAutomaton;
  readonly rule: CompiledRule;
}

class LabelSearch {
  readonly #before: RuleLayers;
  readonly #after: RuleLayers;
  readonly #tracked: Tracked[];
  readonly #changed: PatternAutomaton;
  readonly #exempt = new PatternAutomaton(compilePattern(`*${GUARD_EXEMPT}`));
  readonly #alphabet: readonly number[];

  constructor(before: Policy, after: Policy, change: RuleChange) {
    this.#before = compileLayers(before, change.action);
    this.#after = compileLayers(after, change.action);
    const rules = [this.#before, this.#after].flatMap(({ person, flags, document, guards }) => [
      ...person,
      ...flags,
      ...document,
      ...guards,
    ]);
    const automata = new Map<string, PatternAutomaton>();
    this.#tracked = rules.map((rule) => {
      const fold = rule.source === "guard" ? foldCase : undefined;
      const key = JSON.stringify([rule.inWorkspace, fold !== undefined, rule.tokens]);
      const automaton = automata.get(key) ?? new PatternAutomaton(rule.tokens, fold);
      automata.set(key, automaton);
      return { automaton, rule };
    });
    const own = this.#tracked.find(
      ({ rule }) => rule.pattern === change.resource && rule.source !== "guard",
    );
    this.#changed = own?.automaton ?? new PatternAutomaton(compilePattern(change.resource));
    const points = new Set([OTHER, ...toCodePoints(GUARD_EXEMPT)]);
    for (const { tokens, source } of rules) {
      for (const token of tokens) {
        if (token >= 0) points.add(token);
        if (source === "guard" && token >= 0x61 && token <= 0x7a) points.add(token - 0x20);
      }
    }
    this.#alphabet = [...points];
  }

  finds(start: Start): boolean {
    const automata = [
      ...new Set([this.#changed, this.#exempt, ...this.#tracked.map((one) => one.automaton)]),
    ];
    const inWorkspace = new Set(
      this.#tracked.filter(({ rule }) => rule.inWorkspace).map(({ automaton }) => automaton),
    );
    const places = new Map(automata.map((automaton, place) => [automaton, place]));
    const changedPlace = places.get(this.#changed) ?? 0;
    const first = automata.map((automaton) => {
      const isIn = inWorkspace.has(automaton);
      if (isIn && start.workspacePrefix === null) return PatternAutomaton.dead;
      const text = isIn ? `${start.workspacePrefix ?? ""}${start.begins}` : start.begins;
      return automaton.follow(automaton.start, toCodePoints(text));
    });
    const isAt = (state: readonly number[], automaton: PatternAutomaton) =>
      automaton.accepts(state[places.get(automaton) ?? 0] ?? PatternAutomaton.dead);
    const seen = new Set<string>();
    let level: (readonly number[])[] = [first];
    let steps = 0;
    for (let length = 0; level.length > 0; length += 1) {
      const next: (readonly number[])[] = [];
      for (const state of level) {
        for (const point of this.#alphabet) {
          const slash = point === 0x2f;
          if (length === 0 && start.absolute !== null && slash !== start.absolute) continue;
          steps += automata.length;
          if (steps > MAX_STEPS) return true;
          const reached = automata.map((automaton, place) =>
            automaton.step(state[place] ?? PatternAutomaton.dead, point),
          );
          if (reached[changedPlace] === PatternAutomaton.dead) continue;
          const key = reached.join();
          if (seen.has(key)) continue;
          seen.add(key);
          if (isAt(reached, this.#changed) && this.#tightensAt(reached, isAt)) return true;
          next.push(reached);
        }
      }
      level = next;
    }
    return false;
  }

  #tightensAt(
    state: readonly number[],
    isAt: (state: readonly number[], automaton: PatternAutomaton) => boolean,
  ): boolean {
    const matched = new Set(
      this.#tracked.filter(({ automaton }) => isAt(state, automaton)).map(({ rule }) => rule),
    );
    const exempt = isAt(state, this.#exempt);
    const effect = (layers: RuleLayers): PermissionEffect =>
      decideByLayers(layers, (rule) => matched.has(rule), exempt).effect;
    return STRICTNESS[effect(this.#after)] > STRICTNESS[effect(this.#before)];
  }
}
