import type { AgentDocument } from "../config/agent-document.ts";

/** What the templates of shipped texts stand for in one run, line by line (E-036). */
export interface TemplateLines {
  readonly delegation_targets: readonly string[];
  readonly skills: readonly string[];
}

const TEMPLATE = /\{\{(delegation_targets|skills)\}\}/g;

/** The text with its templates filled in; `isEmpty` when one of them stands for nothing. */
export function expandTemplates(
  text: string,
  lines: TemplateLines,
): { readonly text: string; readonly isEmpty: boolean } {
  let isEmpty = false;
  const expanded = text.replace(TEMPLATE, (_, name: keyof TemplateLines) => {
    isEmpty ||= lines[name].length === 0;
    return lines[name].join("\n");
  });
  return { text: expanded, isEmpty };
}

/**
 * What a session's agent may delegate to, and the skills it can use. A session at the depth ceiling delegates no further.
 *
 * No skill can be loaded yet, so there is none to name.
 */
export function templateLines(
  { permissions }: Pick<AgentDocument, "permissions">,
  facts: {
    readonly agents: ReadonlyMap<string, AgentDocument>;
    readonly depth: number;
    readonly maxDepth: number;
  },
): TemplateLines {
  const targets = facts.depth < facts.maxDepth ? delegationTargets(permissions, facts.agents) : [];
  return {
    delegation_targets: targets.map(({ id, description }) => `${id} — ${description}`),
    skills: [],
  };
}

/** Enabled subagents that the last rule of their name does not deny, in the order of the rules (C-076). */
function delegationTargets(
  permissions: AgentDocument["permissions"],
  agents: ReadonlyMap<string, AgentDocument>,
): AgentDocument[] {
  const named = permissions.filter(
    ({ action, resource }) => action === "delegate" && agents.has(resource),
  );
  const last = new Map(named.map(({ resource, effect }) => [resource, effect]));
  return [...last].flatMap(([id, effect]) => {
    const agent = agents.get(id);
    const isTarget = agent?.enabled === true && (agent.mode === "subagent" || agent.mode === "all");
    return effect !== "deny" && isTarget ? [agent] : [];
  });
}
