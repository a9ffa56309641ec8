import type { ExplainedLabel, PermissionEffect } from "@cookie-agent/sdk/protocol";
import type { Policy } from "./compile-rules.ts";
import { evaluatePolicy, type JudgedResource } from "./evaluate-policy.ts";
import { explainLabel, type RulePlaces } from "./explain-label.ts";

/** How one resource is judged, with the trace of every label that counts. */
export interface ResourceTrace {
  readonly effect: PermissionEffect;
  readonly labels: ExplainedLabel[];
  readonly commandReason?: string;
}

export function explainResource(
  policy: Policy,
  resource: JudgedResource,
  places: RulePlaces,
): ResourceTrace {
  const { effect, evaluations } = evaluatePolicy(policy, [resource]);
  const labels = evaluations.map((one) =>
    explainLabel(policy, resource.action, one.label, places, one.effect),
  );
  if (!("command" in resource)) return { effect, labels };
  return { effect, labels, commandReason: commandReason(resource, effect, labels) };
}

function commandReason(
  { command, parsed, parts }: Extract<JudgedResource, { command: string }>,
  effect: PermissionEffect,
  labels: readonly ExplainedLabel[],
): string {
  const isWhole = labels.every(({ label }) => label === command);
  if (effect === "deny") {
    return isWhole && parts.length > 1
      ? "a deny matches the command as a whole"
      : "a part that is denied denies the whole command";
  }
  if (!parsed && parts.length === 0 && labels.every(isByAny)) {
    return "every rule that can match the command answers alike, so its parts were not looked at";
  }
  if (!parsed)
    return "what the command runs cannot be read for certain; only a * rule could allow it";
  if (labels.some((one) => one.effect === "ask" && one.decided_by?.effect === "allow")) {
    return "what a part becomes when it runs is open, and a stricter rule may match that";
  }
  const isExact = labels.every(({ decided_by: rule }) => rule?.resource === command);
  if (effect === "allow" && isWhole && isExact) return "a rule allows exactly this command";
  if (effect === "allow") return "every part of the command is allowed";
  return "a part that asks makes the whole command ask";
}

function isByAny({ decided_by: rule }: ExplainedLabel): boolean {
  return rule !== null && rule.literals === 0;
}
