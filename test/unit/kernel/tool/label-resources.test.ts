import type { StaticResource } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { declareTool, openRoom } from "./dispatch-fixture.ts";

const PARAMETERS = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer" },
    list: { type: "array", items: { type: "string" } },
  },
};

async function run(resources: readonly StaticResource[], args: object) {
  const room = openRoom([
    declareTool({
      name: "look",
      permission_name: "look_up",
      parameters: PARAMETERS,
      prepare: { mode: "static", resources: [...resources], serialize: [{ arg: "text" }] },
    }),
  ]);
  const [outcome] = await room.dispatch([["look", args]]);
  return { room, outcome, resource: room.plugins.calls[0]?.params.resource };
}

describe("static preparation", () => {
  test.for<[string, StaticResource, object, string | null]>([
    ["a string argument", { action: "read", arg: "text" }, { text: "a  b" }, "a  b"],
    ["a number", { action: "read", arg: "count" }, { count: 7 }, "7"],
    ["a list", { action: "read", arg: "list" }, { list: ["a", "b"] }, '["a","b"]'],
    ["an absent optional argument", { action: "read", arg: "text" }, {}, null],
    ["a constant", { action: "read", const: "goal:current" }, {}, "goal:current"],
    ["the tool's name", { action: "read", tool: true }, {}, "look"],
    ["nothing", { action: "read", none: true }, { text: "x" }, null],
    ["an argument of a plugin tool", { action: "plugin", arg: "text" }, { text: "x" }, "look_up x"],
    ["nothing of a plugin tool", { action: "plugin", none: true }, {}, "look_up"],
    ["a path", { action: "read", arg: "text", as: "path" }, { text: "./a/../b.ts" }, "b.ts"],
    ["a command", { action: "bash", arg: "text", as: "command" }, { text: "a && b" }, "a && b"],
  ])(
    "[E-080] the label of %s needs no request to the plugin",
    async ([, resource, args, label]) => {
      const { room, outcome, resource: sent } = await run([resource], args);
      expect([outcome?.outcome, sent]).toEqual(["completed", label]);
      expect(room.plugins.prepares).toEqual([]);
    },
  );

  test("[E-080] every resource of a call is judged under the lifetime and boundary it declares", async () => {
    const room = openRoom([
      declareTool({
        name: "look",
        prepare: {
          mode: "static",
          resources: [
            { action: "read", arg: "value" },
            { action: "write", const: "x", lifetime: "process_local", boundary: "delegation_tree" },
          ],
        },
      }),
    ]);
    const judged: object[] = [];
    room.gate = ({ operation, verdict }) => {
      judged.push(...operation.resources);
      expect(verdict.evaluations.map(({ label }) => label)).toEqual(["a", "x"]);
      return Promise.resolve({ granted: true, source: "policy", reason: "policy_allowed" });
    };
    await room.dispatch([["look", { value: "a" }]]);
    expect(judged).toMatchObject([
      { capability: "look:read", binding_lifetime: "restart_stable", boundary: "exact" },
      { capability: "look:write", binding_lifetime: "process_local", boundary: "delegation_tree" },
    ]);
  });
});

test("[S-005] what a model writes into its arguments changes nothing about who calls", async () => {
  const room = openRoom([
    declareTool({
      name: "look",
      parameters: {
        type: "object",
        properties: {
          session_id: { type: "string" },
          run_id: { type: "string" },
          agent: { type: "string" },
        },
      },
      prepare: { mode: "static", resources: [{ action: "plugin", none: true }] },
    }),
  ]);
  const claim = { session_id: "someone", run_id: "else", agent: "root" };
  await room.dispatch([["look", claim]]);
  await room.dispatch([["look", {}]]);
  const [claimed, honest] = room.plugins.calls.map(({ params, rootSessionId }) => [
    params.session_id,
    params.run_id,
    rootSessionId,
  ]);
  expect(claimed).toEqual(honest);
  expect(room.plugins.calls[0]?.params.arguments).toEqual(claim);
});
