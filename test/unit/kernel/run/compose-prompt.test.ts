import { describe, expect, test } from "vitest";
import type { Config } from "../../../../kernel/src/config/config.ts";
import { type AdmissionFacts, admitRun } from "../../../../kernel/src/run/admit-run.ts";
import { composePrompt } from "../../../../kernel/src/run/compose-prompt.ts";
import { computeRevisions } from "../../../../kernel/src/run/runtime-snapshot.ts";
import { customProvider, runtimeOf } from "../model/provider-fixture.ts";
import { declareTool, NO_SELECTION, pluginFacts } from "../tool/dispatch-fixture.ts";

const ROOT = { overlay: [], depth: 0 };

const FACTS = {
  agentPrompt: "You code.\n",
  workspaceRoot: "/work",
  today: "2026-01-01",
  templates: { delegation_targets: [], skills: [] },
};

describe("the system prompt", () => {
  test("[T-002] plugins add sections under their id, in their order, and empty ones none", () => {
    const prompt = composePrompt({
      ...FACTS,
      plugins: [
        { name: "builtin.fs", tier: "first_party", instructions: "\nRead first.\n" },
        { name: "builtin.bash", tier: "first_party", instructions: null },
        { name: "builtin.mcp", tier: "first_party", instructions: " \n " },
        { name: "acme", tier: "trusted", instructions: "Ask." },
      ],
    });
    expect(prompt.split("\n\n")).toEqual([
      "You code.",
      `Working directory: /work\nPlatform: ${process.platform}\nDate: 2026-01-01`,
      '<tool_instructions provider="builtin.fs">\nRead first.\n</tool_instructions>',
      '<tool_instructions provider="acme">\nAsk.\n</tool_instructions>',
    ]);
  });

  test("[E-036] templates of shipped plugins are filled in, a section for which there is nothing is left out", () => {
    const compose = (targets: string[]) =>
      composePrompt({
        ...FACTS,
        templates: { delegation_targets: targets, skills: [] },
        plugins: [
          {
            name: "builtin.delegation",
            tier: "first_party",
            instructions: "Ask:\n{{delegation_targets}}",
          },
          { name: "builtin.skills", tier: "first_party", instructions: "Use: {{skills}}" },
          { name: "acme", tier: "trusted", instructions: "Write {{skills}}." },
        ],
      });
    const acme = '<tool_instructions provider="acme">\nWrite {{skills}}.\n</tool_instructions>';
    expect(
      compose(["explore — Looks around", "review — Reads $& again"]).split("\n\n").slice(2),
    ).toEqual([
      '<tool_instructions provider="builtin.delegation">\nAsk:\nexplore — Looks around\nreview — Reads $& again\n</tool_instructions>',
      acme,
    ]);
    expect(compose([]).split("\n\n").slice(2)).toEqual([acme]);
  });

  test("[T-002] a run keeps the sections that it was admitted with", async () => {
    let instructions = "Before.";
    const models = runtimeOf(customProvider());
    const plugins = () => [
      pluginFacts("builtin.fs", [declareTool({ name: "read" })], { instructions }),
    ];
    const facts: AdmissionFacts = {
      agents: new Map(),
      models,
      plugins,
      workspaceRoot: "/work",
      config: {
        tools: NO_SELECTION,
        modelRetry: {},
        delegation: { maxDepth: 1 },
        messaging: { enabled: true },
      } as unknown as Config,
      revisions: (documents) => computeRevisions({ models, plugins }, documents),
    };
    const model = { model: "custom.test/m", variant: null };
    const run = await admitRun(facts, { agent: "default", model }, ROOT);
    instructions = "After.";
    const later = await admitRun(facts, { agent: "default", model }, ROOT);
    expect(run.systemPrompt).toContain('provider="builtin.fs">\nBefore.\n');
    expect(run.agent.composed_prompt).toBe(run.systemPrompt);
    expect(later.systemPrompt).toContain("After.");
  });
});
