import {
  AgentSnapshot,
  EVENT_PAYLOADS,
  type OverlayRule,
  PermissionAction,
  PermissionEffect,
  type PermissionRule,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { Policy } from "../../../../kernel/src/permission/compile-rules.ts";
import {
  evaluatePolicy,
  isToolVisible,
} from "../../../../kernel/src/permission/evaluate-policy.ts";

type Rules = readonly (readonly [PermissionAction, string, PermissionEffect])[];

function rules(entries: Rules): PermissionRule[] {
  return entries.map(([action, resource, effect]) => ({ action, resource, effect }));
}

function policy(document: Rules, overlay: { user?: Rules; flag?: Rules } = {}): Policy {
  const overlayRules: OverlayRule[] = [
    ...rules(overlay.user ?? []).map((rule) => ({ ...rule, source: "user" as const })),
    ...rules(overlay.flag ?? []).map((rule) => ({ ...rule, source: "flag" as const })),
  ];
  return { documentRules: rules(document), overlayRules, workspaceRoot: "/home/me/space" };
}

function effectOf(of: Policy, action: PermissionAction, label: string | null): PermissionEffect {
  return evaluatePolicy(of, [{ action, label }]).effect;
}

test("[S-151] there are nine actions, three effects and at most 256 rules", () => {
  expect(PermissionAction.options).toEqual([
    "read",
    "write",
    "bash",
    "webfetch",
    "delegate",
    "message",
    "skill",
    "mcp",
    "plugin",
  ]);
  expect(PermissionEffect.options).toEqual(["allow", "ask", "deny"]);
  const rule = { action: "read", resource: "*", effect: "ask", source: "user" };
  const accepts = (length: number) => {
    const list = Array.from({ length }, () => rule);
    const overlay = { type: "session_permission_overlay_set", overlay: { rules: list } };
    return [
      AgentSnapshot.shape.permissions.safeParse(list).success,
      EVENT_PAYLOADS.session_permission_overlay_set.safeParse(overlay).success,
    ];
  };
  expect(accepts(256)).toEqual([true, true]);
  expect(accepts(257)).toEqual([false, false]);
});

describe("precedence", () => {
  test("[S-153] [T-006] [C-015] what no rule matches is denied", () => {
    expect(evaluatePolicy(policy([]), [{ action: "webfetch", label: "https://a" }])).toEqual({
      effect: "deny",
      evaluations: [
        {
          action: "webfetch",
          label: "https://a",
          effect: "deny",
          pattern: null,
          source: "default",
        },
      ],
    });
  });

  test("[S-153] a matching rule that a person set decides before any of the document", () => {
    const both = policy([["webfetch", "https://a/*", "deny"]], {
      user: [["webfetch", "*", "allow"]],
    });
    expect(evaluatePolicy(both, [{ action: "webfetch", label: "https://a/b" }])).toMatchObject({
      effect: "allow",
      evaluations: [{ pattern: "*", source: "session_overlay" }],
    });
  });

  test("[S-153] a person's rule that does not match leaves the decision to the document", () => {
    const both = policy([["webfetch", "*", "allow"]], {
      user: [["webfetch", "https://b*", "deny"]],
    });
    expect(effectOf(both, "webfetch", "https://a")).toBe("allow");
  });

  test.for<[string, Rules, PermissionEffect]>([
    [
      "more literal characters win over fewer",
      [
        ["write", "src/gen*", "deny"],
        ["write", "src/*", "allow"],
      ],
      "deny",
    ],
    [
      "at equal literals fewer wildcards win",
      [
        ["write", "src/gen*", "deny"],
        ["write", "*src/gen*", "allow"],
      ],
      "deny",
    ],
    [
      "at equal literals and wildcards the later rule wins",
      [
        ["write", "src/gen*", "deny"],
        ["write", "src/gen?", "allow"],
      ],
      "allow",
    ],
  ])("[S-154] [C-015] %s", ([, document, expected]) => {
    expect(effectOf(policy(document), "write", "src/gen1")).toBe(expected);
  });

  test.for<[PermissionEffect, PermissionEffect, PermissionEffect]>([
    ["allow", "ask", "ask"],
    ["ask", "deny", "deny"],
    ["allow", "deny", "deny"],
    ["allow", "allow", "allow"],
  ])("[S-155] resources with %s and %s give %s", ([first, second, expected]) => {
    const two = policy([
      ["write", "a", first],
      ["write", "b", second],
    ]);
    const labels = ["a", "b"].map((label) => ({ action: "write" as const, label }));
    expect(evaluatePolicy(two, labels).effect).toBe(expected);
  });

  test.for<[Rules, PermissionEffect]>([
    [[["skill", "deploy", "allow"]], "deny"],
    [
      [
        ["skill", "*", "allow"],
        ["skill", "deploy", "deny"],
      ],
      "allow",
    ],
    [[["skill", "*", "ask"]], "ask"],
  ])("[S-156] a check without a label looks at bare rules only: %j", ([document, expected]) => {
    expect(effectOf(policy(document), "skill", null)).toBe(expected);
  });

  test("[S-164] a flag lifts ask and the unmatched deny", () => {
    const lifted = policy([["write", "*", "ask"]], {
      flag: [
        ["write", "*", "allow"],
        ["webfetch", "*", "allow"],
      ],
    });
    expect(effectOf(lifted, "write", "a")).toBe("allow");
    expect(effectOf(lifted, "webfetch", "https://a")).toBe("allow");
  });

  test("[S-164] a flag never beats an explicit deny of the document, however specific it is", () => {
    const denied = policy([["write", "*", "deny"]], { flag: [["write", "src/a.ts", "allow"]] });
    expect(effectOf(denied, "write", "src/a.ts")).toBe("deny");
  });
});

describe("the workspace directory", () => {
  const inside = policy([
    ["write", "${workspace_dir}/src/*", "allow"],
    ["read", "${workspace_dir}/*", "allow"],
    ["webfetch", "${workspace_dir}", "allow"],
  ]);

  test.for<[string, PermissionEffect]>([
    ["src/a.ts", "allow"],
    ["/home/me/space/src/a.ts", "allow"],
    ["/home/me/spaces/src/a.ts", "deny"],
    ["lib/a.ts", "deny"],
    ["/src/a.ts", "deny"],
    ["artifact://src/a", "deny"],
  ])("[C-014] [S-152] its pattern decides for write of %s: %s", ([label, expected]) => {
    expect(effectOf(inside, "write", label)).toBe(expected);
  });

  test("[C-014] [S-152] it is expanded for read and write only", () => {
    expect(effectOf(inside, "read", "a")).toBe("allow");
    expect(effectOf(inside, "webfetch", "/home/me/space")).toBe("deny");
  });
});

describe("the guard for environment files", () => {
  const all: Rules = [["read", "*", "allow"]];

  test.for([".env", ".env.local", "app/.env", "/srv/app/.env.production"])(
    "[C-091] [S-157] [T-054] reading %s asks although everything is allowed",
    (label) => {
      expect(evaluatePolicy(policy(all), [{ action: "read", label }])).toMatchObject({
        effect: "ask",
        evaluations: [{ source: "guard" }],
      });
    },
  );

  test.for([".env.example", "app/.env.local.example", "env", ".envrc", "src/env.ts"])(
    "[C-091] [T-054] %s is not guarded",
    (label) => {
      expect(effectOf(policy(all), "read", label)).toBe("allow");
    },
  );

  test("[S-157] [T-054] a rule of the document with the same specificity was declared later", () => {
    expect(effectOf(policy([...all, ["read", ".env", "allow"]]), "read", ".env")).toBe("allow");
  });

  test("[S-157] [C-091] a more specific rule of the document wins by ordinary specificity", () => {
    expect(
      effectOf(policy([...all, ["read", "fixtures/*", "allow"]]), "read", "fixtures/.env"),
    ).toBe("allow");
  });

  test("[S-157] [C-091] [T-054] it loosens neither the unmatched deny nor a written one", () => {
    expect(effectOf(policy([["read", "src/*", "allow"]]), "read", ".env")).toBe("deny");
    expect(effectOf(policy([["read", "*", "deny"]]), "read", ".env")).toBe("deny");
  });

  test("[S-157] [T-054] [T-005] it makes no tool visible", () => {
    const tool = { action: "read", permissionName: "read" } as const;
    expect(isToolVisible(policy([["read", "*", "deny"]]), tool)).toBe(false);
  });

  test("it guards reading only", () => {
    expect(effectOf(policy([["write", "*", "allow"]]), "write", ".env")).toBe("allow");
  });
});

describe("visibility", () => {
  const tool = { action: "write", permissionName: "edit" } as const;

  test.for<[string, Rules, boolean]>([
    ["no rule", [], false],
    ["a bare deny", [["write", "*", "deny"]], false],
    ["a rule of another action", [["read", "*", "allow"]], false],
    ["an ask rule", [["write", "src/*", "ask"]], true],
    [
      "a named exception to a deny of everything",
      [
        ["write", "*", "deny"],
        ["write", "notes.md", "allow"],
      ],
      true,
    ],
  ])("[S-159] [C-085] [T-005] %s", ([, document, visible]) => {
    expect(isToolVisible(policy(document), tool)).toBe(visible);
  });

  test("[S-159] a rule of the overlay shows, and its deny does not hide", () => {
    const shown = policy([["write", "*", "ask"]], { user: [["write", "*", "deny"]] });
    expect(isToolVisible(shown, tool)).toBe(true);
    expect(isToolVisible(policy([], { flag: [["write", "*", "allow"]] }), tool)).toBe(true);
  });

  test.for<[string, boolean]>([
    ["*", true],
    ["jira_read", true],
    ["jira_read *", true],
    ["jira_read ABC-1", true],
    ["jira_*", true],
    ["jira_write *", false],
    ["jira", false],
    ["jira_reader", false],
  ])("[S-159] [T-005] a plugin tool is shown by the rule %s: %s", ([pattern, visible]) => {
    const jira = { action: "plugin", permissionName: "jira_read" } as const;
    expect(isToolVisible(policy([["plugin", pattern, "allow"]]), jira)).toBe(visible);
  });
});

test("[S-155] a call that names no resource is denied, whatever the rules", () => {
  const all = policy([["write", "*", "allow"]], { user: [["write", "*", "allow"]] });
  expect(evaluatePolicy(all, [])).toEqual({ effect: "deny", evaluations: [] });
});

test("at most 256 evaluations are kept, the strictest ones first", () => {
  const mixed = policy([
    ["write", "*", "allow"],
    ["write", "f300", "deny"],
  ]);
  const many = Array.from({ length: 301 }, (_, at) => ({
    action: "write" as const,
    label: `f${at}`,
  }));
  const { effect, evaluations } = evaluatePolicy(mixed, many);
  expect(effect).toBe("deny");
  expect(evaluations).toHaveLength(256);
  expect(evaluations[0]?.label).toBe("f300");
  expect(evaluatePolicy(mixed, many.slice(0, 257)).evaluations).toHaveLength(256);
});
