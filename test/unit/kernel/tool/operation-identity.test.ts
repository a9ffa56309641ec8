import { describe, expect, test } from "vitest";
import {
  type CallResource,
  fallbackFingerprint,
  identifyOperation,
} from "../../../../kernel/src/tool/operation-identity.ts";
import { buildSlotTable } from "../../../../kernel/src/tool/tool-slots.ts";
import { declareTool, NO_SELECTION, pluginFacts, RUN, SESSION } from "./dispatch-fixture.ts";

const CONTEXT = {
  sessionId: SESSION,
  rootSessionId: SESSION,
  runId: RUN,
  cwd: "/work",
  workspaceRoot: "/work",
};
const RESOURCE: CallResource = {
  action: "write",
  label: "a.ts",
  kind: "path",
  lifetime: "restart_stable",
  boundary: "exact",
  source: "primary_operation",
};

function identify(
  options: {
    plugin?: string;
    description?: string;
    args?: object;
    resources?: readonly CallResource[];
  } = {},
) {
  const { plugin = "one", description = "d", args = { a: 1, b: 2 } } = options;
  const facts = pluginFacts(plugin, [declareTool({ name: "edit", description })]);
  const [bound] = buildSlotTable({ plugins: [facts], tools: NO_SELECTION }).entries();
  if (bound === undefined) throw new Error("the tool is not bound");
  const call = { args: { ...args }, resources: [...(options.resources ?? [RESOURCE])] };
  return identifyOperation(bound, call, CONTEXT);
}

describe("operation identity", () => {
  test("[E-085] [S-166] equal calls have one fingerprint, whatever the order of members and resources", () => {
    const other = { ...RESOURCE, label: "b.ts" };
    expect(identify({ args: { b: 2, a: 1 }, resources: [other, RESOURCE] }).fingerprint).toBe(
      identify({ resources: [RESOURCE, other] }).fingerprint,
    );
  });

  test("[S-166] the boundary and source of a resource are no part of the fingerprint", () => {
    const moved: CallResource = {
      ...RESOURCE,
      boundary: "command_prefix",
      source: "secondary_operation",
    };
    expect(identify({ resources: [moved] }).fingerprint).toBe(identify().fingerprint);
  });

  test.for([
    ["arguments", { args: { a: 2 } }],
    ["a label", { resources: [{ ...RESOURCE, label: "c.ts" }] }],
    ["an action", { resources: [{ ...RESOURCE, action: "read" as const }] }],
    ["the plugin", { plugin: "two" }],
    ["the declaration", { description: "changed" }],
  ] as const)("[E-075] [E-085] [C-067] another fingerprint comes with %s", ([, change]) => {
    expect(identify(change).fingerprint).not.toBe(identify().fingerprint);
  });

  test("resources are named by kind and digest of their label", () => {
    expect(identify().operation).toMatchObject({
      capabilities: [{ action: "write", operation: "edit:write" }],
      resources: [
        {
          canonical: expect.stringMatching(/^path:[0-9a-f]{64}$/) as unknown,
          binding_lifetime: "restart_stable",
        },
      ],
    });
  });

  test("a call that was never prepared has an identity of its own", () => {
    expect(fallbackFingerprint("x", { a: 1 })).toBe(fallbackFingerprint("x", { a: 1 }));
    expect(fallbackFingerprint("x", { a: 1 })).not.toBe(fallbackFingerprint("x", { a: 2 }));
  });
});
