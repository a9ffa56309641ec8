import type {
  PermissionAction,
  PermissionEffect,
  PermissionEvaluation,
} from "@cookie-agent/sdk/protocol";
import { cutUtf8 } from "../support/safe-text.ts";
import type { CommandLabels } from "./command-labels.ts";
import { isBarePattern, type Judgement, judgeOf, type Policy } from "./compile-rules.ts";
import { judgeCommandString, strictest } from "./judge-command.ts";
import { canMatchPrefix, isSpelledWith, matchPattern, toCodePoints } from "./match-pattern.ts";

/** One thing that a call wants to do; a null label is a check by name alone. */
export type JudgedResource =
  | { readonly action: PermissionAction; readonly label: string | null }
  | ({ readonly action: PermissionAction; readonly command: string } & CommandLabels);

export interface PolicyVerdict {
  readonly effect: PermissionEffect;
  /** At most 256, the strictest first when some had to be left out. */
  readonly evaluations: PermissionEvaluation[];
}

const MAX_EVALUATIONS = 256;
const MAX_LABEL_BYTES = 4096;

/** Judges all resources of one operation; the strictest answer is the verdict, and none at all is a deny (S-155). */
export function evaluatePolicy(
  policy: Policy,
  resources: readonly JudgedResource[],
): PolicyVerdict {
  if (resources.length === 0) return { effect: "deny", evaluations: [] };
  const verdicts = resources.map((resource) => judgeResource(policy, resource));
  return {
    effect: strictest(verdicts.map((verdict) => verdict.effect)),
    evaluations: boundEvaluations(verdicts.flatMap((verdict) => verdict.evaluations)),
  };
}

/**
 * False when the parts of a command string cannot change its verdict, so that nobody need parse it.
 *
 * A label holds no character but those of the command and spaces, so a rule with any other literal matches none.
 * Let R be the rules of the action that are left, in document and overlay. Two cases give every label one answer E:
 *
 * 1. Every rule of R is `*`. All of them match every label, so precedence picks the same rule for all.
 * 2. All rules of R have one effect and one of them is `*`. Something always matches, and has that effect.
 *
 * A string that was read gets the strictest of its parts, all E, or the answer to the exact whole string, also E.
 * One that was not gets the answer of the `*` rules, E again, and a specific deny or ask exists only where E is that
 * effect. Without any rule of the action both are denied; where rules exist but R is empty they differ, hence true.
 * The guard has rules for `read`, so `read` is never skipped.
 */
export function needsParts(policy: Policy, command: string, action: PermissionAction): boolean {
  const all = rulesOf(policy, action);
  const characters = new Set(toCodePoints(`${command} `));
  const rules = all.filter((rule) => isSpelledWith(rule.resource, characters));
  const bare = rules.filter((rule) => isBarePattern(rule.resource));
  const sameEffect = rules.every((rule) => rule.effect === rules[0]?.effect);
  const uniform = bare.length > 0 && (bare.length === rules.length || sameEffect);
  return action === "read" || !(uniform || all.length === 0);
}

/**
 * True when some allow or ask rule of document or overlay is for the action and, for `plugin`, can match a label of
 * the tool's own permission; neither precedence nor the guard counts (S-159, C-085).
 */
export function isToolVisible(
  policy: Policy,
  tool: { readonly action: PermissionAction; readonly permissionName: string },
): boolean {
  return grantingRules(policy, tool.action).some(
    (rule) => tool.action !== "plugin" || reaches(rule.resource, tool.permissionName),
  );
}

function judgeResource(policy: Policy, resource: JudgedResource): PolicyVerdict {
  const judge = judgeOf(policy, resource.action);
  const evaluate = (label: string | null, judgement: Judgement): PermissionEvaluation => ({
    action: resource.action,
    label: label ? cutUtf8(label, MAX_LABEL_BYTES) : null,
    effect: judgement.effect,
    pattern: judgement.pattern,
    source: judgement.source,
  });
  if (!("command" in resource)) {
    const judgement = judge(resource.label);
    return { effect: judgement.effect, evaluations: [evaluate(resource.label, judgement)] };
  }
  const { command } = resource;
  if (grantingRules(policy, resource.action).length === 0) {
    return { effect: "deny", evaluations: [evaluate(command, judge(command))] };
  }
  const { effect, judged } = judgeCommandString(judge, command, resource);
  return { effect, evaluations: judged.map((one) => evaluate(one.label, one)) };
}

function boundEvaluations(evaluations: PermissionEvaluation[]): PermissionEvaluation[] {
  if (evaluations.length <= MAX_EVALUATIONS) return evaluations;
  const byEffect = (effect: PermissionEffect) =>
    evaluations.filter((evaluation) => evaluation.effect === effect);
  return [...byEffect("deny"), ...byEffect("ask"), ...byEffect("allow")].slice(0, MAX_EVALUATIONS);
}

function rulesOf(policy: Policy, action: PermissionAction) {
  return [...policy.documentRules, ...policy.overlayRules].filter((rule) => rule.action === action);
}

function grantingRules(policy: Policy, action: PermissionAction) {
  return rulesOf(policy, action).filter((rule) => rule.effect !== "deny");
}

function reaches(pattern: string, permissionName: string): boolean {
  return matchPattern(pattern, permissionName) || canMatchPrefix(pattern, `${permissionName} `);
}
