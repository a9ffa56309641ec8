import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { normalizeArgv } from "../../../cli/src/normalize-argv.ts";

const IDS = ["run", "session:list", "session:show", "trust"];
const VALUE_OPTIONS = new Set(["--model", "-m", "--data-dir"]);
const normalize = (...argv: string[]) => normalizeArgv(argv, IDS, VALUE_OPTIONS);

describe("the words of a command line", () => {
  test.for([
    { argv: ["run", "hello"], words: ["run"], rest: ["hello"] },
    { argv: ["session", "list"], words: ["session", "list"], rest: [] },
    { argv: ["session", "--json", "list"], words: ["session", "list"], rest: ["--json"] },
    {
      argv: ["--data-dir", "session", "session", "show", "x"],
      words: ["session", "show"],
      rest: ["--data-dir", "session", "x"],
    },
    { argv: ["--model=run", "run", "x"], words: ["run"], rest: ["--model=run", "x"] },
    {
      argv: ["-m", "a/b", "--json", "run", "x"],
      words: ["run"],
      rest: ["-m", "a/b", "--json", "x"],
    },
    { argv: ["run", "trust"], words: ["run"], rest: ["trust"] },
    { argv: ["session"], words: ["session"], rest: [] },
    { argv: ["session", "lst"], words: ["session"], rest: ["lst"] },
    { argv: ["sesion", "list"], words: [], rest: ["sesion", "list"] },
    { argv: ["--", "run"], words: [], rest: ["--", "run"] },
    { argv: ["session", "--", "list"], words: ["session"], rest: ["--", "list"] },
    { argv: ["run", "--", "--json"], words: ["run"], rest: ["--", "--json"] },
    { argv: ["-"], words: [], rest: ["-"] },
    { argv: [], words: [], rest: [] },
  ])("[C-213] of $argv are $words", ({ argv, words, rest }) => {
    expect(normalize(...argv)).toEqual({ words, rest });
  });

  test("[C-213] nothing is lost and nothing is added", () => {
    const token = fc.constantFrom("run", "session", "list", "show", "--json", "-m", "x", "-", "--");
    fc.assert(
      fc.property(fc.array(token), (argv) => {
        const { words, rest } = normalize(...argv);
        expect([...words, ...rest].sort()).toEqual([...argv].sort());
      }),
    );
  });
});
