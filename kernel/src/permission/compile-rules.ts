import { join } from "node:path";
import type {
  OverlayRule,
  PermissionAction,
  PermissionEffect,
  PermissionRule,
  RuleSource,
} from "@cookie-agent/sdk/protocol";
import { ARTIFACT_SCHEME } from "../artifact/artifact-uri.ts";
import { HOLE } from "./command-words.ts";
import {
  type CompiledPattern,
  compilePattern,
  compileShape,
  coversShape,
  holdsWorkspaceDir,
  matchCompiled,
  meetsShape,
  specificityOf,
  toCodePoints,
} from "./match-pattern.ts";

/** Everything that a permission check depends on. */
export interface Policy {
  readonly documentRules: readonly PermissionRule[];
  readonly overlayRules: readonly OverlayRule[];
  /** Absolute; what `${workspace_dir}` stands for. */
  readonly workspaceRoot: string;
}

/** The answer for one label, with the rule that gave it. */
export interface Judgement {
  readonly effect: PermissionEffect;
  /** Null: no rule matched. */
  readonly pattern: string | null;
  readonly source: RuleSource;
  readonly literals: number;
  readonly wildcards: number;
}

/** Answers for one label of one action; a null label is a check by name alone, for which only `*` rules count. */
export interface Judge {
  (label: string | null): Judgement;
  /** True when a rule that does not allow may decide one of the texts that the holes of a shape turn into (S-266). */
  mayRefuse(shape: string): boolean;
  /** True when some allow rule matches all of those texts. */
  allowsAll(shape: string): boolean;
}

/** Ask before environments, in files or of processes, are read; the earliest declarations of every document (S-157, C-091). */
export const GUARD_RULES: readonly PermissionRule[] = [
  ".env",
  ".env.*",
  "*/.env",
  "*/.env.*",
  "/proc/*/environ",
].map((resource) => ({ action: "read", resource, effect: "ask" }));
export const GUARD_EXEMPT = ".example";

const UNMATCHED: Judgement = {
  effect: "deny",
  pattern: null,
  source: "default",
  literals: 0,
  wildcards: 0,
};

export interface CompiledRule extends Judgement {
  readonly tokens: CompiledPattern;
  readonly bare: boolean;
  readonly inWorkspace: boolean;
}

/** True for `*`, which is what a bare effect means (S 6.1). */
export function isBarePattern(pattern: string): boolean {
  return /^\*+$/.test(pattern);
}

const judges = new WeakMap<Policy, Map<PermissionAction, Judge>>();

/** The judge of one action; compiled once for a policy, which nobody changes. */
export function judgeOf(policy: Policy, action: PermissionAction): Judge {
  const known = judges.get(policy) ?? new Map<PermissionAction, Judge>();
  judges.set(policy, known);
  let judge = known.get(action);
  if (judge === undefined) {
    judge = compileRules(policy, action);
    known.set(action, judge);
  }
  return judge;
}

/**
 * Compiles the rules of one action into a judge (S 6.3): a person's overlay where it matches, then the document
 * with the guard, then deny; a flag lifts `ask` and the unmatched deny but never an explicit deny (S-164).
 */
function compileRules(policy: Policy, action: PermissionAction): Judge {
  const layers = compileLayers(policy, action);
  const { person, flags, document } = layers;
  const judge = (label: string | null): Judgement => {
    return decideByLayers(layers, matcherOf(label, policy), isGuardExempt(label));
  };
  return Object.assign(judge, {
    mayRefuse(text: string): boolean {
      const shape = compileShape(text, HOLE);
      const byPerson = bestForAll(person, shape);
      if (byPerson !== undefined) return byPerson.effect !== "allow";
      const byFlag = bestForAll(flags, shape)?.effect;
      const byDocument = bestForAll(document, shape)?.effect ?? "allow";
      if (byFlag === undefined) return byDocument !== "allow";
      return byFlag !== "allow" || byDocument === "deny";
    },
    allowsAll(text: string): boolean {
      const shape = compileShape(text, HOLE);
      return [...person, ...document, ...flags].some(
        ({ effect, tokens }) => effect === "allow" && coversShape(tokens, shape),
      );
    },
  });
}

/** The rules of one action by where they come from, each compiled. */
export interface RuleLayers {
  readonly person: readonly CompiledRule[];
  readonly flags: readonly CompiledRule[];
  readonly document: readonly CompiledRule[];
  readonly guards: readonly CompiledRule[];
}

export function compileLayers(policy: Policy, action: PermissionAction): RuleLayers {
  const compile = (rules: readonly PermissionRule[], source: RuleSource) =>
    rules.filter((rule) => rule.action === action).map((rule) => compileRule(rule, source, policy));
  const overlay = (source: OverlayRule["source"]) =>
    compile(
      policy.overlayRules.filter((rule) => rule.source === source),
      "session_overlay",
    );
  return {
    person: overlay("user"),
    flags: overlay("flag"),
    document: compile(policy.documentRules, "agent_document"),
    guards: compile(GUARD_RULES, "guard"),
  };
}

/** Tells which rules match a label. */
export function matcherOf(label: string | null, policy: Policy): (rule: CompiledRule) => boolean {
  const subject = createSubject(label, policy.workspaceRoot);
  return (rule) => matches(rule, subject);
}

/** True for a label on which the guard stays silent. */
export function isGuardExempt(label: string | null): boolean {
  return label?.endsWith(GUARD_EXEMPT) === true;
}

/** The answer for a label of which it is known which rules match it. */
export function decideByLayers(
  { person, flags, document, guards }: RuleLayers,
  isMatch: (rule: CompiledRule) => boolean,
  guardExempt: boolean,
): Judgement {
  const byPerson = bestMatch(person, isMatch);
  if (byPerson !== undefined) return byPerson;
  const guard = guardExempt ? undefined : bestMatch(guards, isMatch);
  const explicit = withGuard(bestMatch(document, isMatch), guard);
  const flag = bestMatch(flags, isMatch);
  if (flag !== undefined && explicit?.effect !== "deny") return flag;
  return explicit ?? UNMATCHED;
}

/** The strongest rule for a shape: a specific ask or deny counts where it may match, an allow where it always does. */
function bestForAll(
  rules: readonly CompiledRule[],
  shape: readonly number[],
): CompiledRule | undefined {
  let best: CompiledRule | undefined;
  for (const rule of rules) {
    const counts =
      rule.effect === "allow"
        ? coversShape(rule.tokens, shape)
        : rule.literals > 0 && meetsShape(rule.tokens, shape);
    if (counts && (best === undefined || outranks(rule, best))) best = rule;
  }
  return best;
}

/** The guard only ever tightens: it needs something to be more specific than, and that must not be a deny. */
function withGuard(
  document: CompiledRule | undefined,
  guard: CompiledRule | undefined,
): CompiledRule | undefined {
  if (document === undefined || guard === undefined || document.effect === "deny") return document;
  return outranks(document, guard) ? document : guard;
}

function bestMatch(
  rules: readonly CompiledRule[],
  isMatch: (rule: CompiledRule) => boolean,
): CompiledRule | undefined {
  let best: CompiledRule | undefined;
  for (const rule of rules) {
    if (isMatch(rule) && (best === undefined || outranks(rule, best))) best = rule;
  }
  return best;
}

/** More literals, then fewer wildcards; `later` wins a tie because it was declared after `earlier` (S-154). */
function outranks(later: CompiledRule, earlier: CompiledRule): boolean {
  if (later.literals !== earlier.literals) return later.literals > earlier.literals;
  return later.wildcards <= earlier.wildcards;
}

interface Subject {
  readonly label: readonly number[] | null;
  /** The label as an absolute path, which `${workspace_dir}` patterns are held against. */
  readonly path: readonly number[] | null;
}

function createSubject(label: string | null, workspaceRoot: string): Subject {
  if (label === null) return { label: null, path: null };
  const text = toCodePoints(label);
  if (label.startsWith("/")) return { label: text, path: text };
  if (label.startsWith(ARTIFACT_SCHEME)) return { label: text, path: null };
  return { label: text, path: toCodePoints(join(workspaceRoot, label)) };
}

function matches(rule: CompiledRule, subject: Subject): boolean {
  if (subject.label === null) return rule.bare;
  const text = rule.inWorkspace ? subject.path : subject.label;
  if (text === null) return false;
  return matchCompiled(rule.tokens, rule.source === "guard" ? text.map(foldCase) : text);
}

/** A file system may open `.env` for `.ENV`, so the guard does not tell the two apart. */
export function foldCase(point: number): number {
  return point >= 0x41 && point <= 0x5a ? point + 0x20 : point;
}

function compileRule(rule: PermissionRule, source: RuleSource, policy: Policy): CompiledRule {
  const takesPaths = rule.action === "read" || rule.action === "write";
  const inWorkspace = takesPaths && holdsWorkspaceDir(rule.resource);
  const root = policy.workspaceRoot.replace(/\/+$/, "");
  const tokens = compilePattern(rule.resource, inWorkspace ? root : undefined);
  return {
    effect: rule.effect,
    pattern: rule.resource,
    source,
    ...specificityOf(tokens),
    tokens,
    bare: isBarePattern(rule.resource),
    inWorkspace,
  };
}
