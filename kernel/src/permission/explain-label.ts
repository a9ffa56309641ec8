import type {
  ExplainedLabel,
  OverlayRule,
  PermissionAction,
  PermissionEffect,
  RuleCandidate,
} from "@cookie-agent/sdk/protocol";
import {
  type CompiledRule,
  compileLayers,
  decideByLayers,
  isGuardExempt,
  matcherOf,
  type Policy,
} from "./compile-rules.ts";

/** Where each rule of the agent's document stands, in its order; empty when that is not known. */
export type RulePlaces = readonly NonNullable<RuleCandidate["place"]>[];

/** The decision trace of one label (S 6.3). `effect` is its answer where its circumstances make that a stricter one. */
export function explainLabel(
  policy: Policy,
  action: PermissionAction,
  label: string | null,
  places: RulePlaces,
  effect?: PermissionEffect,
): ExplainedLabel {
  const layers = compileLayers(policy, action);
  const isMatch = matcherOf(label, policy);
  const exempt = isGuardExempt(label);
  const decided = decideByLayers(layers, isMatch, exempt);
  const placeOf = placesOf(policy, action, layers.document, places);
  const candidateOf = (rule: CompiledRule, setBy?: OverlayRule["source"]): RuleCandidate => {
    const place = placeOf.get(rule);
    const { pattern, literals, wildcards, source } = rule;
    return {
      resource: pattern ?? "",
      effect: rule.effect,
      source,
      literals,
      wildcards,
      ...(setBy && { set_by: setBy }),
      ...(place && { place }),
    };
  };
  const found = new Map<CompiledRule, RuleCandidate>();
  for (const rule of layers.person.filter(isMatch)) found.set(rule, candidateOf(rule, "user"));
  for (const rule of layers.document.filter(isMatch)) found.set(rule, candidateOf(rule));
  for (const rule of exempt ? [] : layers.guards.filter(isMatch)) {
    found.set(rule, candidateOf(rule));
  }
  for (const rule of layers.flags.filter(isMatch)) found.set(rule, candidateOf(rule, "flag"));
  const candidates = [...found.values()];
  const winner = [...found].find(([rule]) => rule === decided)?.[1] ?? null;
  return {
    label,
    effect: effect ?? decided.effect,
    decided_by: winner,
    precedence_reason: reasonFor(winner, candidates, label),
    candidates,
  };
}

function placesOf(
  policy: Policy,
  action: PermissionAction,
  document: readonly CompiledRule[],
  places: RulePlaces,
): Map<CompiledRule, RulePlaces[number]> {
  const found = new Map<CompiledRule, RulePlaces[number]>();
  let next = 0;
  for (const [index, rule] of policy.documentRules.entries()) {
    if (rule.action !== action) continue;
    const compiled = document[next];
    const place = places[index];
    if (compiled !== undefined && place !== undefined) found.set(compiled, place);
    next += 1;
  }
  return found;
}

function reasonFor(
  winner: RuleCandidate | null,
  candidates: readonly RuleCandidate[],
  label: string | null,
): string {
  if (winner === null) {
    if (candidates.length > 0) return "the guard gives nothing that no rule of the agent gives";
    if (label === null) return "the call names no resource, and no * rule exists for the action";
    return "no rule of the action matches, and what no rule matches is denied";
  }
  if (winner.set_by === "flag") {
    return "a flag allows it, and no rule of the agent denies it";
  }
  const rivals = candidates.filter((rule) => rule !== winner && layerOf(rule) === layerOf(winner));
  const chosen = specificity(winner, rivals);
  if (winner.set_by === "user") {
    return `a rule that a person set in the session stands above those of the agent${chosen}`;
  }
  const flagged = candidates.some((rule) => rule.set_by === "flag");
  const above = flagged && winner.effect === "deny" ? "; an explicit deny stands above flags" : "";
  if (winner.source === "guard") return `the guard of environment files asks${chosen}${above}`;
  return rivals.length === 0
    ? `it is the agent's only rule that matches${above}`
    : `of the agent's rules that match it is the best${chosen}${above}`;
}

/** Rules that compete by how specific they are; document and guard do so together. */
function layerOf({ set_by: setBy }: RuleCandidate): string {
  return setBy ?? "document";
}

function specificity(winner: RuleCandidate, rivals: readonly RuleCandidate[]): string {
  if (rivals.length === 0) return "";
  const literals = Math.max(...rivals.map((rule) => rule.literals));
  if (winner.literals > literals) return `: it spells out more characters (${winner.literals})`;
  const equal = rivals.filter((rule) => rule.literals === winner.literals);
  if (winner.literals < literals) return ": a deny of the agent is never loosened";
  if (equal.every((rule) => rule.wildcards > winner.wildcards)) return ": it has fewer wildcards";
  return ": it was declared last";
}
