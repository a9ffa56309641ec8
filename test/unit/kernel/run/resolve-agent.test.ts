import type { ModelSelection } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { AgentDocument } from "../../../../kernel/src/config/agent-document.ts";
import { defaultAgentId } from "../../../../kernel/src/run/resolve-agent.ts";

type Facts = Parameters<typeof defaultAgentId>[0];

/** Only the models that are named here can run. */
function facts(agents: readonly Partial<AgentDocument>[], available: readonly string[]): Facts {
  const documents = agents.map((agent) => ({
    mode: "primary",
    enabled: true,
    models: [{ model: "p/m", variant: null }],
    ...agent,
  })) as AgentDocument[];
  const select = (model: string): ModelSelection => ({ model, variant: null });
  return {
    agents: new Map(documents.map((document) => [document.id, document])),
    models: {
      resolveVariant: select,
      has: (model: string) => available.includes(model),
      firstAvailable: () => available.map(select)[0],
    },
  } as unknown as Facts;
}

describe("[C-088] the default root agent", () => {
  test.for<
    [what: string, agents: Partial<AgentDocument>[], available: string[], id: string | null]
  >([
    ["is primary where it can run", [{ id: "a" }, { id: "primary" }], ["p/m"], "primary"],
    ["is else the first that can run", [{ id: "b" }, { id: "a" }], ["p/m"], "a"],
    [
      "skips what is disabled, a subagent, or without a model that runs",
      [
        { id: "primary", enabled: false },
        { id: "a", mode: "subagent" },
        { id: "b", models: [{ model: "q/gone", variant: null }] },
        { id: "c", mode: "all" },
      ],
      ["p/m"],
      "c",
    ],
    ["is the built-in one where nothing authored can run", [], ["p/m"], "default"],
    ["is none without any model", [{ id: "a" }], [], null],
  ])("%s", ([, agents, available, id]) => {
    expect(defaultAgentId(facts(agents, available))).toBe(id);
  });
});
