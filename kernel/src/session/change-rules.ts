import type { OverlayRule } from "@cookie-agent/sdk/protocol";
import type { Policy } from "../permission/compile-rules.ts";
import { isTightening } from "../permission/tightening.ts";
import type { SessionParts } from "./session-parts.ts";

/** The rules as they stand, before and after one of the session's own is set or removed. */
export interface RulesChange {
  readonly policy: Policy;
  readonly rule: Pick<OverlayRule, "action" | "resource">;
  readonly overlay: readonly OverlayRule[];
}

/**
 * Records the session's own rules after one of them changed (S 6.11). A change that makes an action stricter anywhere
 * takes the tree's grants for it back first, and is not made when that cannot be written down.
 */
export function changeRules(
  { log, treeGrants }: Pick<SessionParts, "log" | "treeGrants">,
  { policy, rule, overlay }: RulesChange,
): Promise<void> {
  const rules = [...overlay];
  return treeGrants.changeRules(
    rule.action,
    () => isTightening(policy, { ...policy, overlayRules: rules }, rule),
    () =>
      log.append([
        { payload: { type: "session_permission_overlay_set", overlay: { rules } }, runId: null },
      ]),
  );
}
