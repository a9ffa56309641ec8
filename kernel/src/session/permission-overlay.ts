import { CookieError, type OverlayRule } from "@cookie-agent/sdk/protocol";

const MAX_RULES = 256;

/**
 * The overlay with `rule` in it, in place of one for the same action and resource; the same overlay when that
 * changes nothing (S 6.11).
 */
export function insertRule(
  overlay: readonly OverlayRule[],
  rule: OverlayRule,
): readonly OverlayRule[] {
  const isReplaced = ({ action, resource }: OverlayRule) =>
    action === rule.action && resource === rule.resource;
  const before = overlay.find(isReplaced);
  if (before?.effect === rule.effect && before.source === rule.source) return overlay;
  const rules = [...overlay.filter((each) => !isReplaced(each)), rule];
  if (rules.length <= MAX_RULES) return rules;
  throw new CookieError(
    "resource_limit",
    `a session takes at most ${MAX_RULES} permission rules of its own`,
  );
}

/** The overlay without the rule for an action and resource; the same overlay when it has none (S 6.11). */
export function removeRule(
  overlay: readonly OverlayRule[],
  { action, resource }: Pick<OverlayRule, "action" | "resource">,
): readonly OverlayRule[] {
  const rules = overlay.filter((rule) => rule.action !== action || rule.resource !== resource);
  return rules.length === overlay.length ? overlay : rules;
}
