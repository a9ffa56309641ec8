import type { OverlayRule, PermissionAction, PermissionRule } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { EXPLORE_AGENT, makeDefaultAgent } from "../../../../kernel/src/config/built-in-agents.ts";
import { effectivePermissions } from "../../../../kernel/src/permission/effective-permissions.ts";
import {
  evaluatePolicy,
  isToolVisible,
} from "../../../../kernel/src/permission/evaluate-policy.ts";

function policy(documentRules: readonly PermissionRule[], overlayRules: OverlayRule[] = []) {
  return { documentRules, overlayRules, workspaceRoot: "/home/me/space" };
}

describe("effectivePermissions", () => {
  test("each action has an answer by name, and each pattern the rule that stands for it", () => {
    const effective = effectivePermissions(
      policy(
        [
          { action: "read", resource: "*", effect: "allow" },
          { action: "read", resource: ".env", effect: "deny" },
          { action: "bash", resource: "git *", effect: "ask" },
          { action: "bash", resource: "rm *", effect: "deny" },
        ],
        [
          { action: "bash", resource: "*", effect: "ask", source: "user" },
          { action: "bash", resource: "git *", effect: "allow", source: "flag" },
          { action: "bash", resource: "rm *", effect: "allow", source: "flag" },
        ],
      ),
    );
    expect(effective.map(({ action, effect, source }) => [action, effect, source])).toEqual([
      ["read", "allow", "agent_document"],
      ["write", "deny", "default"],
      ["bash", "ask", "session_overlay"],
      ["webfetch", "deny", "default"],
      ["delegate", "deny", "default"],
      ["message", "deny", "default"],
      ["skill", "deny", "default"],
      ["mcp", "deny", "default"],
      ["plugin", "deny", "default"],
    ]);
    expect(effective[0]?.patterns).toEqual([
      { resource: ".env", effect: "deny", source: "agent_document" },
      { resource: ".env.*", effect: "ask", source: "guard" },
      { resource: "*/.env", effect: "ask", source: "guard" },
      { resource: "*/.env.*", effect: "ask", source: "guard" },
      { resource: "/proc/*/environ", effect: "ask", source: "guard" },
    ]);
    expect(effective[2]?.patterns).toEqual([
      { resource: "git *", effect: "allow", source: "session_overlay" },
      { resource: "rm *", effect: "deny", source: "agent_document" },
    ]);
  });

  test("[S-157] the guard is not reported where nothing can be read", () => {
    expect(effectivePermissions(policy([]))[0]?.patterns).toEqual([]);
  });
});

describe("the built-in agents", () => {
  const agent = makeDefaultAgent({ models: [], delegateTargets: ["explore"] });

  test.for<[PermissionAction, string | null, string]>([
    ["read", "src/a.ts", "allow"],
    ["read", ".env", "ask"],
    ["read", "app/.env.local", "ask"],
    ["read", ".env.example", "allow"],
    ["read", "id_rsa", "deny"],
    ["read", "/home/u/.ssh/id_ed25519", "deny"],
    ["read", "/home/u/.netrc", "deny"],
    ["read", "/proc/self/environ", "deny"],
    ["read", "/proc/1/task/1/environ", "deny"],
    ["read", "/home/u/.cookie-agent/providers/store-v3.json", "deny"],
    ["write", "src/a.ts", "ask"],
    ["webfetch", "https://a", "ask"],
    ["mcp", "server_tool", "ask"],
    ["plugin", "echo x", "ask"],
    ["delegate", "explore", "ask"],
    ["delegate", "other", "deny"],
    ["skill", "deploy", "allow"],
    ["message", "parent", "allow"],
  ])("[S-269] [C-091] default: %s of %s is %s", ([action, label, effect]) => {
    expect(evaluatePolicy(policy(agent.permissions), [{ action, label }]).effect).toBe(effect);
  });

  test("[S-269] explore can read and has nothing else", () => {
    const visible = (action: PermissionAction) =>
      isToolVisible(policy(EXPLORE_AGENT.permissions), { action, permissionName: "x" });
    expect(visible("read")).toBe(true);
    expect(
      (["write", "bash", "webfetch", "delegate", "mcp", "plugin"] as const).some(visible),
    ).toBe(false);
  });
});
