import type { AgentDocument } from "./agent-document.ts";
import { DecodeProblem } from "./decode-problem.ts";
import { formatKey } from "./key-path.ts";

/** What is wrong with a document's delegate rules: each that is no deny names an agent that may be delegated to (C-084). */
export function delegationProblem(
  { id, permissions }: AgentDocument,
  registry: ReadonlyMap<string, AgentDocument>,
): DecodeProblem | undefined {
  for (const { action, resource, effect } of permissions) {
    if (action !== "delegate" || effect === "deny") continue;
    const fault = targetFault(resource, registry);
    if (fault === undefined) continue;
    return new DecodeProblem({
      code: fault.code,
      keyPath: ["permissions", "delegate", resource],
      problem: `agent ${id} cannot delegate to ${formatKey(resource)}: ${fault.reason}`,
      advice: "fix it",
    });
  }
  return undefined;
}

function targetFault(id: string, registry: ReadonlyMap<string, AgentDocument>) {
  if (/[*?]/.test(id)) {
    return { code: "agent_delegation_invalid", reason: "only deny takes a pattern" } as const;
  }
  const target = registry.get(id);
  if (target === undefined) {
    return { code: "agent_delegation_unknown", reason: "there is no such agent" } as const;
  }
  if (target.enabled && (target.mode === "subagent" || target.mode === "all")) return undefined;
  const reason = target.enabled ? `its mode is ${target.mode}` : "it is disabled";
  return { code: "agent_delegation_ineligible", reason } as const;
}
