import type { AvailabilityPredicate } from "@cookie-agent/sdk/protocol";
import type { Config } from "../config/config.ts";
import type { TemplateLines } from "./expand-templates.ts";

/**
 * The predicates of tool declarations that hold for a run (E-037). `goal_open` and `skills_usable` never do: there are
 * neither goals nor skills yet.
 */
export function availablePredicates(
  { delegation_targets: targets }: TemplateLines,
  { messaging }: Pick<Config, "messaging">,
): ReadonlySet<AvailabilityPredicate> {
  return new Set([
    ...(targets.length > 0 ? (["delegation_open"] as const) : []),
    ...(messaging.enabled ? (["messaging_enabled"] as const) : []),
  ]);
}
