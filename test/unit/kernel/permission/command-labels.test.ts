import { describe, expect, test } from "vitest";
import { labelCommand } from "../../../../kernel/src/permission/command-labels.ts";

describe("simple commands", () => {
  test.for<[string, string[]]>([
    ["git  log   --oneline", ["git log --oneline"]],
    ["a && b || c; d & e", ["a", "b", "c", "d", "e"]],
    ["a | b |& c", ["a", "b", "c"]],
    ["(a; b) && { c; d; }", ["a", "b", "c", "d"]],
    ["! grep x y", ["grep x y"]],
    ["if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]],
    ["while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]],
    ["for x in $(a); do b $x; done", ["a", "b $x"]],
    ["case $x in y) a;; *) b;; esac", ["a", "b"]],
    ["f() { a; }; f", ["a", "f"]],
    ["echo $(a $(b)) `c`", ["echo $(a $(b)) `c`", "a $(b)", "b", "c"]],
    ['echo "x $(a)" ${y:-$(b)} $((1 + 2))', ['echo "x $(a)" ${y:-$(b)} $((1 + 2))', "a", "b"]],
    ["diff <(a) >(b)", ["diff <(a) >(b)", "a", "b"]],
    ["cat <<E\n$(a)\nE", ["cat", "a"]],
    ["cat <<'E'\n$(a)\nE", ["cat"]],
    ['wc <<< "$(a)"', ["wc", "a"]],
    ["X=$(a) Y=1; export Z=$(b)", ["a", "b"]],
    ["[[ -f $(a) ]] && b", ["a", "b"]],
    ["a # b", ["a"]],
    ["'git' log", ["git log"]],
    ["git commit -m 'a b'", ["git commit -m 'a b'"]],
    ["X=1", []],
  ])("[S-264] [E-202] %j holds %j", async ([command, parts]) => {
    expect(await labelCommand(command)).toMatchObject({ parsed: true, parts });
  });
});

describe("wrappers", () => {
  test.for([
    "A=1 B=$X git log",
    "env git log",
    "env -i -u HOME A=1 git log",
    'env --unset=HOME -C / A="$X" git log',
    "/usr/bin/env git log",
    "sudo git log",
    "sudo -nu root -- git log",
    "sudo -E --user root A=1 git log",
    "nohup git log",
    "time git log",
    "time -p git log",
    "command git log",
    "exec git log",
    "timeout -k 5 10 git log",
    "nice -n 5 git log",
    "bash -c 'git log'",
    "sh -ec 'git log' name argument",
    "bash --norc -o pipefail -c 'git log'",
    "eval git log",
    "eval 'git log'",
    "nohup env A=1 sudo bash -c \"eval 'git log'\"",
  ])("[S-264] [E-202] %s is the command git log", async (command) => {
    expect(await labelCommand(command)).toMatchObject({ parsed: true, parts: ["git log"] });
  });

  test.for<[string, string[]]>([
    ["ls | xargs -0 -n 1 rm -f", ["ls", "rm -f"]],
    ["xargs -I{} mv {} x", ["mv {} x"]],
    ["bash -c 'a; b' && c", ["a", "b", "c"]],
    ["time (a; b)", ["a", "b"]],
    ["time { a; b; }", ["a", "b"]],
    ["sudo -l", ["sudo -l"]],
    ["command -v git", ["command -v git"]],
    ["bash script.sh", ["bash script.sh"]],
    ["env", ["env"]],
  ])("[S-264] %s holds %j", async ([command, parts]) => {
    expect(await labelCommand(command)).toMatchObject({ parsed: true, parts });
  });

  test("each wrapped form of a command is known beside its label", async () => {
    expect(await labelCommand("A=1 sudo nohup ls")).toEqual({
      parsed: true,
      parts: ["ls"],
      outer: ["sudo nohup ls", "nohup ls", "A=1 sudo nohup ls"],
    });
  });
});

test.for<[string, string[]]>([
  ["echo x > f", ["echo x", "echo x > f"]],
  ["> f echo x", ["echo x", "echo x > f"]],
  ["a && b >> f", ["a", "b", "b >> f"]],
  ["(a) > f", ["> f", "a"]],
  ["cat <<E > f\nx\nE", ["cat", "cat > f"]],
  ["a > /dev/null 2>&1 < f", ["a"]],
])("a file written by %j is part of %j", async ([command, parts]) => {
  expect(await labelCommand(command)).toMatchObject({ parsed: true, parts });
});

test.for([
  "git log $(",
  "if a; then",
  "$CMD x",
  "$(a) x",
  "r* x",
  "r{m,} x",
  "$'r\\x6d' x",
  'eval "$X"',
  'bash -c "rm $X"',
  "env $X rm",
  "sudo --unknown rm",
  "xargs sh -c",
  "xargs env",
  "xargs -I{} {} x",
  "xargs -I{} sh -c 'rm {}'",
  "time for x in a; do b; done",
  "a\0b",
  `echo ${"$(".repeat(3000)}a${")".repeat(3000)}`,
  `echo ${"x".repeat(200_000)}`,
])("[S-266] [E-202] what runs in %j is not known", async (command) => {
  expect((await labelCommand(command)).parsed).toBe(false);
});
