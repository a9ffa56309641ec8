import type { OverlayRule, PermissionEffect, PermissionRule } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judgeOf, type Policy } from "../../../../kernel/src/permission/compile-rules.ts";
import { evaluatePolicy } from "../../../../kernel/src/permission/evaluate-policy.ts";
import { explainLabel } from "../../../../kernel/src/permission/explain-label.ts";
import { explainResource } from "../../../../kernel/src/permission/explain-resource.ts";

type Rule = readonly [string, PermissionEffect];

function policyOf(
  action: "read" | "bash",
  document: readonly Rule[],
  overlay: readonly (readonly [...Rule, OverlayRule["source"]])[] = [],
): Policy {
  return {
    documentRules: document.map(
      ([resource, effect]): PermissionRule => ({ action, resource, effect }),
    ),
    overlayRules: overlay.map(([resource, effect, source]) => ({
      action,
      resource,
      effect,
      source,
    })),
    workspaceRoot: "/w",
  };
}

describe("why a rule decides", () => {
  test.for<[string, Policy, string | null, string, RegExp]>([
    ["nothing matches", policyOf("read", []), "a", "deny", /no rule of the action matches/],
    ["the guard alone", policyOf("read", []), ".env", "deny", /guard gives nothing/],
    ["no name rule", policyOf("read", [["a", "allow"]]), null, "deny", /names no resource/],
    ["one rule", policyOf("read", [["*", "allow"]]), "a", "allow", /only rule/],
    [
      "more characters",
      policyOf("read", [
        ["*", "allow"],
        ["a*", "ask"],
      ]),
      "ab",
      "ask",
      /more characters \(1\)/,
    ],
    [
      "fewer wildcards",
      policyOf("read", [
        ["a*", "allow"],
        ["a**", "ask"],
      ]),
      "ab",
      "allow",
      /fewer wildcards/,
    ],
    [
      "the later one",
      policyOf("read", [
        ["a*", "allow"],
        ["?b", "deny"],
        ["a?", "ask"],
      ]),
      "ab",
      "ask",
      /declared last/,
    ],
    ["the guard", policyOf("read", [["*", "allow"]]), ".ENV", "ask", /guard of environment/],
    [
      "a person",
      policyOf("read", [["a", "deny"]], [["*", "allow", "user"]]),
      "a",
      "allow",
      /a person set/,
    ],
    [
      "a flag",
      policyOf("read", [["a", "ask"]], [["*", "allow", "flag"]]),
      "a",
      "allow",
      /a flag allows/,
    ],
    [
      "a deny above a flag",
      policyOf("read", [["a", "deny"]], [["*", "allow", "flag"]]),
      "a",
      "deny",
      /stands above flags/,
    ],
  ])("is said: %s", ([, policy, label, effect, reason]) => {
    const explained = explainLabel(policy, "read", label, []);
    expect(explained.effect).toBe(effect);
    expect(explained.precedence_reason).toMatch(reason);
  });
});

const PATTERN = fc.constantFrom("*", "a*", "?", ".env", ".e*", "a/*", "${workspace_dir}/*", "b");
const EFFECT = fc.constantFrom<PermissionEffect>("allow", "ask", "deny");
const POLICY = fc
  .record({
    action: fc.constantFrom<"read" | "bash">("read", "bash"),
    document: fc.array(fc.tuple(PATTERN, EFFECT), { maxLength: 5 }),
    overlay: fc.array(
      fc.tuple(PATTERN, EFFECT, fc.constantFrom<OverlayRule["source"]>("user", "flag")),
      { maxLength: 3 },
    ),
  })
  .map(({ action, document, overlay }) => ({
    action,
    policy: policyOf(action, document, overlay),
  }));
const LABEL = fc.option(
  fc.constantFrom("a", "ab", "b", ".env", ".ENV", ".env.example", "a/.env", "/etc/x"),
);

test("the explanation never differs from the judgement, and its rule is one of those that match", () => {
  fc.assert(
    fc.property(POLICY, LABEL, ({ action, policy }, label) => {
      const judged = judgeOf(policy, action)(label);
      const explained = explainLabel(policy, action, label, []);
      expect(explained.effect).toBe(judged.effect);
      expect(explained.decided_by?.resource ?? null).toBe(judged.pattern);
      expect(explained.decided_by?.source ?? "default").toBe(judged.source);
      if (explained.decided_by !== null) {
        expect(explained.candidates).toContainEqual(explained.decided_by);
      }
      const resource = { action, label };
      expect(explainResource(policy, resource, []).effect).toBe(
        evaluatePolicy(policy, [resource]).effect,
      );
    }),
    { numRuns: 500 },
  );
});
