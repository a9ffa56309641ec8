import type { PermissionEffect } from "@cookie-agent/sdk/protocol";
import type { CommandLabels } from "./command-labels.ts";
import type { Judge, Judgement } from "./compile-rules.ts";

/** A label and the answer it got. */
export interface JudgedLabel extends Judgement {
  readonly label: string;
}

export const STRICTNESS: Readonly<Record<PermissionEffect, number>> = { allow: 0, ask: 1, deny: 2 };

export function strictest(effects: Iterable<PermissionEffect>): PermissionEffect {
  let result: PermissionEffect = "allow";
  for (const effect of effects) if (STRICTNESS[effect] > STRICTNESS[result]) result = effect;
  return result;
}

/**
 * Decides a command string (E-202, S-265, S-266).
 *
 * A specific deny decides on the whole or on any part. Otherwise an allow needs the exact whole string or every
 * part, and a specific ask on another spelling of a part asks. A string that cannot be read is allowed only by `*`,
 * and so is a part with expansions that may turn it into something another rule decides.
 */
export function judgeCommandString(
  judge: Judge,
  command: string,
  labels: CommandLabels,
): { effect: PermissionEffect; judged: JudgedLabel[] } {
  const whole = { label: command, ...judge(command) };
  const parts = labels.parts.map((label) => ({ label, ...judge(label) }));
  const outer = (labels.outer ?? []).map((label) => ({ label, ...judge(label) }));

  const denied = [whole, ...parts, ...outer]
    .filter(isSpecific)
    .filter((one) => one.effect === "deny");
  if (denied.length > 0) return { effect: "deny", judged: denied };
  if (!labels.parsed) return judgeUnread(judge, [whole, ...parts, ...outer.filter(isSpecific)]);
  if (whole.effect === "allow" && whole.pattern === command && whole.wildcards === 0) {
    return { effect: "allow", judged: [whole] };
  }
  // A string without a simple command, such as one assignment, is its own only part.
  const judged = parts.length > 0 ? askWhereOpen(judge, parts, labels) : [whole];
  const asked = outer.filter(isSpecific).filter((one) => one.effect === "ask");
  const decisive = [...judged, ...asked];
  return { effect: strictest(decisive.map((one) => one.effect)), judged: decisive };
}

function askWhereOpen(
  judge: Judge,
  parts: readonly JudgedLabel[],
  { open = [] }: CommandLabels,
): JudgedLabel[] {
  if (judge(null).effect === "allow") return [...parts];
  const doubtful = open.filter(
    ({ label, forms }) =>
      forms.some((form) => judge.mayRefuse(form)) || (label !== null && !judge.allowsAll(label)),
  );
  // A script that a wrapper completes has no part of its own; then no part is certain.
  const everywhere = doubtful.some(({ part }) => part === null);
  const names = new Set(doubtful.map(({ part }) => part));
  return parts.map((one) =>
    one.effect === "allow" && (everywhere || names.has(one.label))
      ? { ...one, effect: "ask" }
      : one,
  );
}

function judgeUnread(judge: Judge, known: JudgedLabel[]) {
  const byName = judge(null);
  const asked = known.filter((one) => one.effect === "ask");
  const effect =
    byName.pattern === null ? "ask" : strictest([byName.effect, ...asked.map((one) => one.effect)]);
  const label = known[0]?.label ?? "";
  // The whole string answers as the name does where only `*` matches it.
  const other = asked.find((one) => one.label !== label || one.pattern !== byName.pattern);
  return { effect, judged: [{ ...byName, label, effect }, ...(other ? [other] : [])] };
}

function isSpecific(one: Judgement): boolean {
  return one.literals > 0;
}
