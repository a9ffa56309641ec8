import type { HookName } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createManifest } from "../../../../sdk/src/plugin/create-manifest.ts";
import { definePlugin, type PluginDefinition } from "../../../../sdk/src/plugin/define-plugin.ts";
import { runHook } from "../../../../sdk/src/plugin/hook-handlers.ts";
import { HOOKS, type HookResult } from "../../../../sdk/src/protocol/hooks.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

const SESSION = "0198c000-0000-7000-8000-000000000001";

function definitionOf(hooks: PluginDefinition["hooks"], more: object = {}): PluginDefinition {
  return { name: "guard", version: "1.0.0", tools: {}, ...(hooks && { hooks }), ...more };
}

const manifestOf = (definition: PluginDefinition) =>
  createManifest(definePlugin(definition), { kind: "node", entry: "main.js" });

describe("the manifest", () => {
  test("[E-038] it lists exactly the hooks that have code, in the order of the protocol", () => {
    const { capabilities } = manifestOf(
      definitionOf({
        tool_after_result: () => undefined,
        user_before_input: () => undefined,
        tool_before_call: () => undefined,
      }),
    );
    expect(capabilities?.intercept).toEqual([
      "user_before_input",
      "tool_before_call",
      "tool_after_result",
    ]);
  });

  test("a plugin without hooks intercepts nothing", () => {
    expect(manifestOf(definitionOf(undefined)).capabilities).not.toHaveProperty("intercept");
  });

  test.for([
    ["no hook of the protocol", { hooks: { tool_before: () => undefined } }, "hooks.tool_before"],
    ["what is no function", { hooks: { message_end: {} } }, "hooks.message_end"],
    [
      "a list beside the code",
      { capabilities: { intercept: ["message_end"] } },
      "capabilities.intercept",
    ],
  ])("[E-038] %s is refused by name", ([, more, member]) => {
    const wrong = definitionOf(undefined, more as object);
    expect(() => manifestOf(wrong)).toThrow(String(member));
  });
});

describe("a served hook", () => {
  test("it gets what the wire says without ids, its session, a signal and the host", async () => {
    const seen: unknown[] = [];
    const served = await serveInMemory(
      definePlugin(
        definitionOf({
          user_before_input: (params, { sessionId, signal, host }) => {
            seen.push(params, sessionId, signal.aborted, typeof host.writeArtifact);
            return { action: "transform", new_text: params.text.toUpperCase() };
          },
        }),
      ),
    );
    const answer = await served.kernel.request(HOOKS.user_before_input, {
      session_id: SESSION as never,
      context_id: "c-1" as never,
      text: "hi",
    });
    expect(answer).toEqual({ action: "transform", new_text: "HI" });
    expect(seen).toEqual([{ text: "hi" }, SESSION, false, "function"]);
  });
});

const NOTHING: { [H in HookName]: HookResult<H> } = {
  user_before_input: { action: "allow" },
  model_before_select: { action: "allow" },
  agent_before_start: {},
  model_before_request: { action: "keep" },
  provider_before_headers: {},
  provider_before_request: { action: "keep" },
  provider_after_response: {},
  message_end: { action: "keep" },
  tool_before_call: { action: "allow" },
  tool_after_result: { action: "keep" },
  session_before_compact: {},
  session_before_fork: { action: "allow" },
  session_before_revert: { action: "allow" },
};

test.for(Object.entries(NOTHING))(
  "a %s that returns nothing changes nothing",
  async ([name, nothing]) => {
    const answer = await runHook(
      name as HookName,
      () => undefined,
      { session_id: SESSION, context_id: "c-1" } as never,
      { signal: new AbortController().signal, host: {} as never, emit: {} as never },
    );
    expect(answer).toEqual(nothing);
  },
);
