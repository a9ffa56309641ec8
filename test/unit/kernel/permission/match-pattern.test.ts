import { WildcardPattern } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  canMatchPrefix,
  compilePattern,
  matchCompiled,
  matchPattern,
  specificityOf,
  toCodePoints,
} from "../../../../kernel/src/permission/match-pattern.ts";

function matchNaively(pattern: readonly string[], text: readonly string[]): boolean {
  const [token, ...rest] = pattern;
  if (token === undefined) return text.length === 0;
  if (token === "*") {
    return matchNaively(rest, text) || (text.length > 0 && matchNaively(pattern, text.slice(1)));
  }
  return (
    text.length > 0 && (token === "?" || token === text[0]) && matchNaively(rest, text.slice(1))
  );
}

function matchReference(pattern: string, text: string): boolean {
  const direct = matchNaively([...pattern], [...text]);
  return direct || (pattern.endsWith(" *") && matchNaively([...pattern.slice(0, -2)], [...text]));
}

const fewLetters = (...letters: string[]) =>
  fc.array(fc.constantFrom(...letters), { maxLength: 9 }).map((parts) => parts.join(""));

describe("matchPattern", () => {
  test.for([
    ["*", "", true],
    ["*", "a/b/c", true],
    ["src/*", "src/deep/file.ts", true],
    ["src/**/x", "src/a/b/x", true],
    ["src/*", "lib/a", false],
    ["?", "a", true],
    ["?", "😀", true],
    ["?", "ab", false],
    ["a?c", "abc", true],
    ["git *", "git", true],
    ["git *", "git log", true],
    ["git *", "gitk", false],
    ["git*", "gitk", true],
    ["git status *", "git status", true],
    ["Git", "git", false],
    ["a.c", "abc", false],
    ["+(a)", "a", false],
    ["it", "git", false],
  ] as const)("[C-012] [S-152] %j against %j is %j", ([pattern, text, expected]) => {
    expect(matchPattern(pattern, text)).toBe(expected);
  });

  test("[C-012] agrees with the obvious recursive definition", () => {
    fc.assert(
      fc.property(
        fewLetters("a", "b", "*", "?", " ", " *", "😀"),
        fewLetters("a", "b", " ", "/", "😀"),
        (pattern, text) => matchPattern(pattern, text) === matchReference(pattern, text),
      ),
      { numRuns: 2000 },
    );
  });

  test("[C-016] a pattern of many stars against a long text that almost matches is answered", () => {
    expect(matchPattern(`${"*a".repeat(1000)}b`, "a".repeat(4000))).toBe(false);
    expect(matchPattern(`${"*?".repeat(1000)}b`, "a".repeat(4000))).toBe(false);
  });
});

test("[C-015] specificity counts literal characters as code points, and every star", () => {
  expect(specificityOf(compilePattern("a😀?**"))).toEqual({ literals: 2, wildcards: 3 });
});

test("[C-014] the workspace directory is taken literally, whatever its name holds", () => {
  const tokens = compilePattern("${workspace_dir}/*", "/w*s?");
  expect(matchCompiled(tokens, toCodePoints("/w*s?/a"))).toBe(true);
  expect(matchCompiled(tokens, toCodePoints("/wxsy/a"))).toBe(false);
});

test.for(["a\\b", "a[b]", "a{b,c}", "a\tb", "a\u0000", "${home}/x", ""])(
  "[C-013] the pattern %j is rejected",
  (pattern) => {
    expect(WildcardPattern.safeParse(pattern).success).toBe(false);
  },
);

test("[C-014] the one expression is accepted in a pattern", () => {
  expect(WildcardPattern.safeParse("${workspace_dir}/**").success).toBe(true);
});

test("a prefix can be matched exactly when some continuation matches", () => {
  fc.assert(
    fc.property(fewLetters("a", "b", "*", "?"), fewLetters("a", "b"), (pattern, prefix) => {
      const completions = ["", "a", "b", pattern.replaceAll(/[*?]/g, "a")];
      const tails = [...pattern].map((_, at) => pattern.slice(at).replaceAll(/[*?]/g, "a"));
      const some = [...completions, ...tails].some((tail) =>
        matchPattern(pattern, `${prefix}${tail}`),
      );
      return canMatchPrefix(pattern, prefix) === some;
    }),
    { numRuns: 2000 },
  );
});
