import type { AgentEntry, ModelEntry, RuntimeSnapshot } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { selectRun } from "../../../../cli/src/headless/select-run.ts";

function model(key: string, more: Partial<ModelEntry> = {}): ModelEntry {
  return {
    key,
    display_name: key,
    available: true,
    offline: key === "offline/script",
    context_tokens: null,
    output_tokens: null,
    tool_calling: true,
    variants: ["fast", "deep"],
    default_variant: "fast",
    ...more,
  };
}

function agent(id: string, chain: readonly string[], more: Partial<AgentEntry> = {}): AgentEntry {
  return {
    id,
    description: id,
    mode: "primary",
    enabled: true,
    runnable_as_root: chain.length > 0,
    resolved_fallback: chain.map((key) => ({ model: key, variant: "deep" })),
    ...more,
  };
}

function snapshot(
  agents: readonly AgentEntry[],
  defaultAgent: string | null,
  models: readonly ModelEntry[] = [model("a/x"), model("b/y"), model("offline/script")],
): RuntimeSnapshot {
  return {
    snapshot_schema_version: 5,
    runtime_revision: `sha256:${"0".repeat(64)}`,
    models: [...models],
    agents: [...agents],
    default_agent: defaultAgent,
    tools: [],
  } as RuntimeSnapshot;
}

const AUTHORED = snapshot([agent("primary", ["b/y"]), agent("other", ["a/x"])], "primary");
const BUILT_IN = snapshot([], "default");
const NOTHING = snapshot([], null, [
  model("offline/script", { variants: [], default_variant: null }),
]);
const RESUMED = { agent: "other", model: { model: "a/x", variant: "deep" } };

describe("the selection of a run", () => {
  test.for([
    ["the default agent, its chain", AUTHORED, {}, null, "primary", "b/y", "deep"],
    ["a flagged agent, its chain", AUTHORED, { agent: "other" }, null, "other", "a/x", "deep"],
    [
      "a flagged model, its default variant",
      AUTHORED,
      { model: "a/x" },
      null,
      "primary",
      "a/x",
      "fast",
    ],
    [
      "a variant alone, of the chain's model",
      AUTHORED,
      { variant: "fast" },
      null,
      "primary",
      "b/y",
      "fast",
    ],
    ["base is no variant", AUTHORED, { variant: "base" }, null, "primary", "b/y", null],
    ["the first available model", BUILT_IN, {}, null, "default", "a/x", "fast"],
    ["the built-in agent by name", BUILT_IN, { agent: "default" }, null, "default", "a/x", "fast"],
    [
      "the offline model where nothing else is",
      NOTHING,
      { model: "offline/script" },
      null,
      "default",
      "offline/script",
      null,
    ],
    ["what was resumed", AUTHORED, {}, RESUMED, "other", "a/x", "deep"],
    [
      "a flagged model before the resumed one",
      AUTHORED,
      { model: "b/y" },
      RESUMED,
      "other",
      "b/y",
      "fast",
    ],
    [
      "a flagged variant of the resumed model",
      AUTHORED,
      { variant: "base" },
      RESUMED,
      "other",
      "a/x",
      null,
    ],
    [
      "a flagged agent on the resumed model",
      AUTHORED,
      { agent: "primary" },
      RESUMED,
      "primary",
      "a/x",
      "deep",
    ],
    [
      "the chain where the resumed model is gone",
      AUTHORED,
      {},
      { agent: "other", model: { model: "gone/z", variant: null } },
      "other",
      "a/x",
      "deep",
    ],
    [
      "the default variant where the resumed one is gone",
      AUTHORED,
      {},
      { agent: "other", model: { model: "a/x", variant: "gone" } },
      "other",
      "a/x",
      "fast",
    ],
    [
      "the default agent where the resumed one is gone",
      AUTHORED,
      {},
      { agent: "gone", model: { model: "a/x", variant: null } },
      "primary",
      "a/x",
      null,
    ],
  ] as const)("[C-220] is %s", ([, given, flags, resumed, agentId, key, variant]) => {
    expect(selectRun(given, flags, resumed)).toEqual({
      agent: agentId,
      model: { model: key, variant },
    });
  });

  test.for([
    ["agent nobody", AUTHORED, { agent: "nobody" }],
    ["agent default", AUTHORED, { agent: "default", model: "a/x" }],
    [
      "agent sub",
      snapshot([agent("sub", ["a/x"], { mode: "subagent" })], "default"),
      { agent: "sub" },
    ],
    [
      "agent off",
      snapshot([agent("off", ["a/x"], { enabled: false })], "default"),
      { agent: "off" },
    ],
    ["agent stranded", snapshot([agent("stranded", [])], "default"), { agent: "stranded" }],
    ["model gone/z", AUTHORED, { model: "gone/z" }],
    ["model a/x", snapshot([], "default", [model("a/x", { available: false })]), { model: "a/x" }],
    ["variant slow of model a/x", AUTHORED, { model: "a/x", variant: "slow" }],
  ] as const)("[C-220] %s is not available", ([what, given, flags]) => {
    expect(() => selectRun(given, flags, null)).toThrow(
      expect.objectContaining({
        code: "unavailable",
        message: expect.stringContaining(`${what} is not available; `) as string,
      }),
    );
  });

  test("[C-220] the offline model is never taken by itself", () => {
    expect(() => selectRun(NOTHING, {}, null)).toThrow(
      expect.objectContaining({ code: "no_runnable_model" }),
    );
  });
});
