import type {
  ExplainedLabel,
  ExplainedResource,
  PermissionExplanation,
  RuleCandidate,
} from "@cookie-agent/sdk/protocol";
import { printable } from "../printable.ts";

/** Rules that are listed beside the one that decides. */
const MAX_OTHERS = 12;

/** An explanation for people: what becomes of the call first, then why. */
export function explanationText(explanation: PermissionExplanation): string {
  const { tool, plugin, tier, agent, mode, outcome, outcome_reason: reason } = explanation;
  return [
    `${tool} (${plugin}, ${tier}) by agent ${agent}: ${explanation.effect}`,
    `in mode ${mode.replaceAll("_", "-")} it ${OUTCOMES[outcome]}: ${reason}`,
    ...notes(explanation),
    ...explanation.resources.flatMap(describeResource),
  ]
    .map(printable)
    .join("\n");
}

const OUTCOMES = { runs: "runs", asks: "asks first", refused: "is refused" } as const;

function notes(explanation: PermissionExplanation): string[] {
  const { visible, effect, allow_tree_grant: offered, tree_grant_id: grant } = explanation;
  return [
    ...(visible ? [] : ["the agent does not get this tool: no rule for its action allows or asks"]),
    ...(grant === undefined ? [] : [`remembered approval: ${grant}`]),
    ...(effect === "ask" && grant === undefined && offered
      ? ["a person can approve it for all sessions of the tree"]
      : []),
  ];
}

function describeResource(resource: ExplainedResource): string[] {
  const { action, kind, label, effect, labels, command_reason: reason } = resource;
  return [
    "",
    `${action} ${label === null ? "by name alone" : quoted(label)}: ${effect}${kind === "command" ? " (command)" : ""}`,
    ...(reason === undefined ? [] : [`  ${reason}`]),
    ...labels.flatMap((one) => describeLabel(one, one.label === label)),
  ];
}

function describeLabel(one: ExplainedLabel, isWhole: boolean): string[] {
  const { decided_by: decided, candidates } = one;
  const others = candidates.filter((rule) => !isSame(rule, decided));
  const more = others.length - MAX_OTHERS;
  const indent = isWhole ? "  " : "    ";
  return [
    ...(isWhole
      ? []
      : [`  ${one.label === null ? "by name alone" : quoted(one.label)}: ${one.effect}`]),
    `${indent}decided by ${decided === null ? "no rule" : describeRule(decided)}`,
    `${indent}${one.precedence_reason}`,
    ...others.slice(0, MAX_OTHERS).map((rule) => `${indent}also matches: ${describeRule(rule)}`),
    ...(more > 0 ? [`${indent}and ${more} more`] : []),
  ];
}

function describeRule({ resource, effect, source, set_by: setBy, place }: RuleCandidate): string {
  const from = place === undefined ? SOURCES[setBy ?? source] : `${place.path}:${place.line}`;
  return `${quoted(resource)} ${effect}, ${from}`;
}

const SOURCES: Readonly<Record<RuleCandidate["source"] | "user" | "flag", string>> = {
  agent_document: "built into the agent",
  guard: "the guard of environment files",
  session_overlay: "of the session",
  default: "nothing",
  user: "set in the session",
  flag: "--allowed-tools",
};

function isSame(rule: RuleCandidate, other: RuleCandidate | null): boolean {
  return JSON.stringify(rule) === JSON.stringify(other);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
