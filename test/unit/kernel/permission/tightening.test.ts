import type { OverlayRule, PermissionEffect, PermissionRule } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judgeOf, type Policy } from "../../../../kernel/src/permission/compile-rules.ts";
import { isTightening } from "../../../../kernel/src/permission/tightening.ts";
import { insertRule, removeRule } from "../../../../kernel/src/session/permission-overlay.ts";

const ROOT = "/w";
const RANK = { allow: 0, ask: 1, deny: 2 };
type Action = "bash" | "read";
type Rule = readonly [string, PermissionEffect];

function policyOf(action: Action, document: readonly Rule[], overlay: readonly OverlayRule[]) {
  const documentRules = document.map(
    ([resource, effect]): PermissionRule => ({ action, resource, effect }),
  );
  return { documentRules, overlayRules: overlay, workspaceRoot: ROOT } satisfies Policy;
}

function own(action: Action, [resource, effect]: Rule, source: OverlayRule["source"] = "user") {
  return { action, resource, effect, source };
}

function setting(document: readonly Rule[], before: readonly Rule[], rule: Rule, action: Action) {
  const overlay = before.map((one) => own(action, one));
  const set = own(action, rule);
  return isTightening(
    policyOf(action, document, overlay),
    policyOf(action, document, insertRule(overlay, set)),
    set,
  );
}

function clearing(document: readonly Rule[], before: readonly Rule[], resource: string) {
  const overlay = before.map((one) => own("bash", one));
  const rule = { action: "bash" as const, resource };
  return isTightening(
    policyOf("bash", document, overlay),
    policyOf("bash", document, removeRule(overlay, rule)),
    rule,
  );
}

describe("[S-174] what tightens", () => {
  test.for<[string, readonly Rule[], readonly Rule[], Rule, boolean]>([
    ["a deny over an allow", [["*", "allow"]], [], ["git *", "deny"], true],
    ["an ask over an allow", [["*", "allow"]], [], ["git *", "ask"], true],
    ["an ask over a deny", [["*", "deny"]], [], ["git *", "ask"], false],
    ["an ask where nothing matched", [], [], ["git *", "ask"], false],
    ["an ask over an ask", [["*", "ask"]], [], ["git *", "ask"], false],
    [
      "a deny of which nothing is left",
      [["*", "allow"]],
      [["git *", "allow"]],
      ["git*", "deny"],
      true,
    ],
    [
      "a deny that a person's finer rules cover whole",
      [["*", "allow"]],
      [["a?", "allow"]],
      ["?a?", "deny"],
      true,
    ],
    [
      "an ask only where it already asks",
      [
        ["*", "allow"],
        ["git push *", "ask"],
      ],
      [],
      ["git push *", "ask"],
      false,
    ],
    [
      "an ask over a finer deny and a wider allow",
      [
        ["*", "allow"],
        ["git push*", "deny"],
      ],
      [],
      ["git p*", "ask"],
      true,
    ],
    ["the same rule with another effect", [], [["x", "allow"]], ["x", "ask"], true],
    ["the same rule loosened", [], [["x", "deny"]], ["x", "ask"], false],
  ])("%s", ([, document, before, rule, expected]) => {
    expect(setting(document, before, rule, "bash")).toBe(expected);
  });

  test("a rule that every label of its own decides elsewhere changes nothing", () => {
    expect(setting([["*", "allow"]], [["abc", "allow"]], ["abc", "allow"], "bash")).toBe(false);
    // Both match only `ab`; the finer one stays the person's answer.
    expect(setting([["*", "allow"]], [["ab", "allow"]], ["a?", "deny"], "bash")).toBe(true);
    expect(setting([["ab", "deny"]], [["a?", "deny"]], ["ab", "deny"], "bash")).toBe(false);
  });

  test("taking a rule away tightens exactly where it uncovers a stricter one", () => {
    expect(clearing([["*", "deny"]], [["git *", "ask"]], "git *")).toBe(true);
    expect(clearing([["*", "allow"]], [["git *", "ask"]], "git *")).toBe(false);
    expect(clearing([], [["git *", "ask"]], "git *")).toBe(true);
    expect(clearing([["*", "ask"]], [["git *", "ask"]], "git *")).toBe(false);
    const mixed: Rule[] = [
      ["*", "allow"],
      ["git push*", "deny"],
    ];
    expect(clearing(mixed, [["git *", "ask"]], "git *")).toBe(true);
    expect(clearing(mixed, [["ls*", "ask"]], "ls*")).toBe(false);
  });

  test("a path is held against a rule with ${workspace_dir} as the absolute path that it is", () => {
    const document: Rule[] = [["${workspace_dir}/*", "deny"]];
    expect(setting(document, [], ["src/*", "ask"], "read")).toBe(false);
    expect(setting([["${workspace_dir}/src/*", "allow"]], [], ["src/*", "ask"], "read")).toBe(true);
    expect(setting([["${workspace_dir}/src/*", "allow"]], [], ["lib/*", "ask"], "read")).toBe(
      false,
    );
  });

  test("the guard counts: an ask on what it asks for already tightens nothing", () => {
    expect(setting([["*", "allow"]], [], [".env", "ask"], "read")).toBe(false);
    expect(setting([["*", "allow"]], [], [".env.*", "ask"], "read")).toBe(true);
  });

  test("rules too many to follow count as tightening, in bounded time", () => {
    const document = Array.from({ length: 64 }, (_, index): Rule => {
      const letter = String.fromCharCode(97 + (index % 26));
      return [`*${letter}*${index}*x*`, index % 2 === 0 ? "deny" : "ask"];
    });
    expect(setting([["*", "deny"], ...document], [], ["*q*", "ask"], "bash")).toBe(true);
  });
});

const LABELS = labelsUpTo(5, ["a", "b", " ", "/"]);
const PATTERN = fc
  .array(fc.constantFrom("a", "b", " ", "*", "?", "/"), { minLength: 1, maxLength: 4 })
  .map((characters) => characters.join(""));
const RULE = fc.tuple(PATTERN, fc.constantFrom<PermissionEffect>("allow", "ask", "deny"));
const OWN = fc.tuple(RULE, fc.constantFrom<OverlayRule["source"]>("user", "flag"));

test("[S-174] it is what trying every short label finds", () => {
  fc.assert(
    fc.property(
      fc.constantFrom<Action>("bash", "read"),
      fc.array(RULE, { maxLength: 4 }),
      fc.array(OWN, { maxLength: 3 }),
      OWN,
      fc.boolean(),
      (action, document, before, [rule, source], removes) => {
        const overlay = before.reduce<readonly OverlayRule[]>(
          (rules, [one, from]) => insertRule(rules, own(action, one, from)),
          [],
        );
        const [first] = overlay;
        const changed = removes && first !== undefined ? first : own(action, rule, source);
        const after =
          changed === first ? removeRule(overlay, changed) : insertRule(overlay, changed);
        const [one, other] = [overlay, after].map((rules) => policyOf(action, document, rules));
        if (one === undefined || other === undefined) throw new Error("no policies");
        const found = [null, ...LABELS].some(
          (label) =>
            RANK[judgeOf(other, action)(label).effect] > RANK[judgeOf(one, action)(label).effect],
        );
        const answer = isTightening(one, other, changed);
        // Labels longer than those that were tried may tighten too, so only one direction is certain.
        if (found) expect(answer).toBe(true);
        else if (answer) expect(isTightenedByLonger(one, other, action)).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

const SHORT = ["", ...labelsUpTo(3, ["a", "b", " ", "/"])];
const GUARDED = [".env", ".env.", "/.env", "/.env.", "/proc/a/environ"].flatMap((guarded) =>
  SHORT.flatMap((before) => SHORT.map((after) => `${before}${guarded}${after}`)),
);
const ODD = ["c", "acb", "cc", "ccc", "cccc", "a c", "c/", "/c", "/w/a", "artifact://a"];
const LONGER = [...labelsUpTo(8, ["a", "b", " ", "/"]), ...ODD];

function isTightenedByLonger(one: Policy, other: Policy, action: Action): boolean {
  const [before, after] = [judgeOf(one, action), judgeOf(other, action)];
  const labels = action === "read" ? [...GUARDED, ...LONGER] : LONGER;
  return labels.some((label) => RANK[after(label).effect] > RANK[before(label).effect]);
}

function labelsUpTo(length: number, alphabet: readonly string[]): string[] {
  let level = [""];
  const all: string[] = [];
  for (let at = 0; at < length; at += 1) {
    level = level.flatMap((label) => alphabet.map((character) => `${label}${character}`));
    all.push(...level);
  }
  return all;
}
