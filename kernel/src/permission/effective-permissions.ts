import { type EffectivePermission, PermissionAction } from "@cookie-agent/sdk/protocol";
import { GUARD_RULES, isBarePattern, judgeOf, type Policy } from "./compile-rules.ts";
import { isToolVisible } from "./evaluate-policy.ts";

/**
 * What holds for each action, as `session.permission.get` reports it (S 6.5): the answer to a check by name, and
 * every pattern with the rule that stands for it. A rule that another one of the same pattern replaces is left out.
 */
export function effectivePermissions(policy: Policy): EffectivePermission[] {
  return PermissionAction.options.map((action) => {
    const { effect, source } = judgeOf(policy, action)(null);
    return { action, effect, source, patterns: effectivePatterns(policy, action) };
  });
}

function effectivePatterns(
  policy: Policy,
  action: PermissionAction,
): EffectivePermission["patterns"] {
  const patterns = new Map<string, EffectivePermission["patterns"][number]>();
  // The guard only tightens what a rule lets through.
  const guards = isToolVisible(policy, { action, permissionName: "" }) ? GUARD_RULES : [];
  const layers = [
    { rules: guards, source: "guard" },
    { rules: policy.documentRules, source: "agent_document" },
    { rules: policy.overlayRules.filter(isFlag), source: "session_overlay" },
    { rules: policy.overlayRules.filter((rule) => !isFlag(rule)), source: "session_overlay" },
  ] as const;
  for (const { rules, source } of layers) {
    for (const rule of rules) {
      if (rule.action !== action || isBarePattern(rule.resource)) continue;
      const standing = patterns.get(rule.resource);
      if (standing?.effect === "deny" && "source" in rule && isFlag(rule)) continue;
      patterns.set(rule.resource, { resource: rule.resource, effect: rule.effect, source });
    }
  }
  return [...patterns.values()];
}

function isFlag(rule: Policy["overlayRules"][number]): boolean {
  return rule.source === "flag";
}
