import type { PermissionAction, TrustTier } from "@cookie-agent/sdk/protocol";
import type { ResolvedTool } from "../plugin/plugin-facts.ts";

/**
 * Fits a replacement into the slot of a first-party tool (E-073): same actions, same required arguments, and where
 * the slot reads its labels from the arguments, the slot's own label rule.
 */
export function fitSlot(
  slot: ResolvedTool,
  replacement: ResolvedTool,
  tier: TrustTier,
): ResolvedTool | { readonly problem: string } {
  const allowed = new Set(actionsOf(slot));
  const foreign = actionsOf(replacement).find((action) => !allowed.has(action));
  if (foreign !== undefined) return { problem: `it uses the action ${foreign}, the slot does not` };
  const required = requiredOf(slot);
  const offered = requiredOf(replacement);
  const missing = [...required].find((name) => !offered.has(name));
  if (missing !== undefined) return { problem: `it does not require the argument ${missing}` };
  const extra = [...offered].find((name) => !required.has(name));
  if (extra !== undefined) return { problem: `it requires the argument ${extra}` };
  const { prepare } = replacement;
  if (prepare.mode === "dynamic") {
    const ownAction = actionsOf(slot).every((action) => action === "plugin");
    if (tier === "untrusted" && !ownAction) return { problem: "it must be prepared statically" };
    return replacement;
  }
  if (slot.prepare.mode === "dynamic") return replacement;
  return { ...replacement, prepare: { ...prepare, resources: slot.prepare.resources } };
}

function actionsOf({ prepare }: ResolvedTool): PermissionAction[] {
  return prepare.mode === "static"
    ? prepare.resources.map(({ action }) => action)
    : [...prepare.actions];
}

function requiredOf({ declaration }: ResolvedTool): Set<string> {
  const { required } = declaration.parameters;
  return new Set(
    Array.isArray(required) ? required.filter((name) => typeof name === "string") : [],
  );
}
