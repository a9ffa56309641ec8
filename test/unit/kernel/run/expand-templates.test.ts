import type { PermissionRule } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import type { AgentDocument, AgentMode } from "../../../../kernel/src/config/agent-document.ts";
import { expandTemplates, templateLines } from "../../../../kernel/src/run/expand-templates.ts";

function agent(id: string, mode: AgentMode, enabled = true): [string, AgentDocument] {
  const document = { id, mode, enabled, description: `The ${id}` } as AgentDocument;
  return [id, document];
}

const agents = new Map([
  agent("explore", "subagent"),
  agent("review", "all"),
  agent("main", "primary"),
  agent("off", "subagent", false),
]);
const delegate = (resource: string, effect: PermissionRule["effect"]): PermissionRule => ({
  action: "delegate",
  resource,
  effect,
});
const targets = (permissions: PermissionRule[], depth = 0) =>
  templateLines({ permissions }, { agents, depth, maxDepth: 1 }).delegation_targets;

test("[E-036] delegation targets are the enabled subagents that the document allows, below the ceiling", () => {
  const rules = [
    delegate("review", "ask"),
    delegate("explore", "allow"),
    delegate("main", "allow"),
    delegate("off", "allow"),
    delegate("nobody", "allow"),
    { action: "read", resource: "review", effect: "allow" } as const,
  ];
  expect(targets(rules)).toEqual(["review — The review", "explore — The explore"]);
  expect(targets([...rules, delegate("review", "deny")])).toEqual(["explore — The explore"]);
  expect(targets(rules, 1)).toEqual([]);
});

test("[E-036] a description keeps what stands around its templates, and other braces", () => {
  const lines = { delegation_targets: ["a — A", "b — B"], skills: [] };
  expect(expandTemplates("To:\n{{delegation_targets}}\n{{other}}", lines)).toEqual({
    text: "To:\na — A\nb — B\n{{other}}",
    isEmpty: false,
  });
  expect(expandTemplates("Any of {{skills}}.", lines)).toEqual({ text: "Any of .", isEmpty: true });
});
