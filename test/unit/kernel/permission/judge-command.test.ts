import type { PermissionEffect, PermissionRule } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { labelCommand } from "../../../../kernel/src/permission/command-labels.ts";
import type { Policy } from "../../../../kernel/src/permission/compile-rules.ts";
import { evaluatePolicy, needsParts } from "../../../../kernel/src/permission/evaluate-policy.ts";

type Rules = Readonly<Record<string, PermissionEffect>>;

function policy(document: Rules, flags: Rules = {}): Policy {
  const toRules = (rules: Rules): PermissionRule[] =>
    Object.entries(rules).map(([resource, effect]) => ({ action: "bash", resource, effect }));
  return {
    documentRules: toRules(document),
    overlayRules: toRules(flags).map((rule) => ({ ...rule, source: "flag" })),
    workspaceRoot: "/home/me/space",
  };
}

async function effectOf(of: Policy, command: string): Promise<PermissionEffect> {
  const labels = await labelCommand(command);
  return evaluatePolicy(of, [{ action: "bash", command, ...labels }]).effect;
}

describe("chains", () => {
  const git = policy({ "*": "ask", "git *": "allow" });
  const rm = policy({ "*": "allow", "rm -rf *": "deny" });

  test("[T-188] [S-265] [E-202] [B128] a prefix rule does not cover what follows in the chain", async () => {
    expect(await effectOf(git, "git log && curl x | sh")).toBe("ask");
    expect(await effectOf(git, "git log && git status")).toBe("allow");
  });

  test.for([
    "cd . && rm -rf t",
    "$(rm -rf t)",
    "(rm -rf t)",
    "echo `rm -rf t`",
    "if a; then rm -rf t; fi",
  ])("[T-188] [S-265] [E-202] [B128] a deny is found in %s", async (command) => {
    expect(await effectOf(rm, command)).toBe("deny");
  });

  test.for(["r\\m -rf t", "'rm' -rf t", 'rm "-rf" t', "/bin/rm -rf t", "rm  -rf  t"])(
    "[S-265] a deny sees through the spelling of %s",
    async (command) => {
      expect(await effectOf(rm, command)).toBe("deny");
    },
  );
});

test.for(["AWS_PROFILE=p aws x", "bash -c 'aws x'", "eval 'aws x'", "sudo -u root aws x"])(
  "[T-188] [S-264] [E-202] [B130] a rule that asks for aws asks for %s",
  async (command) => {
    expect(await effectOf(policy({ "*": "allow", "aws *": "ask" }), command)).toBe("ask");
  },
);

test("[S-265] [B131] allow and deny look at the same unwrapped label", async () => {
  const pnpm = policy({ "pnpm publish*": "deny", "pnpm *": "allow" });
  expect(await effectOf(pnpm, "nohup pnpm publish")).toBe("deny");
  expect(await effectOf(pnpm, "nohup pnpm build")).toBe("allow");
});

test.for<[PermissionEffect, string]>([
  ["deny", "ls && sudo rm x"],
  ["ask", "sudo ls"],
])("[E-202] a %s rule for a wrapper counts where %s uses it", async ([effect, command]) => {
  expect(await effectOf(policy({ "*": "allow", "sudo *": effect }), command)).toBe(effect);
});

describe("the whole string", () => {
  test("[T-188] [S-265] [E-202] an allow on the exact whole string allows a chain", async () => {
    const exact = policy({ "*": "ask", "make && make test": "allow" });
    expect(await effectOf(exact, "make && make test")).toBe("allow");
    expect(await effectOf(exact, "make && make install")).toBe("ask");
  });

  test("[S-265] an allow with a wildcard on the whole string is not enough", async () => {
    expect(await effectOf(policy({ "*": "ask", "make *": "allow" }), "make && curl x")).toBe("ask");
  });

  test("[S-265] an allow that is spelled like the whole string but has a wildcard is not exact", async () => {
    const spelled = policy({ "*": "ask", "make; rm *": "allow" });
    expect(await effectOf(spelled, "make; rm *")).toBe("ask");
  });

  test("[S-265] [E-202] [B128] a deny on a part beats an allow on the exact whole string", async () => {
    const both = policy({ "make && rm -rf t": "allow", "make *": "allow", "rm *": "deny" });
    expect(await effectOf(both, "make && rm -rf t")).toBe("deny");
  });

  test("[S-265] [E-202] a deny on the whole string denies though every part is allowed", async () => {
    expect(await effectOf(policy({ "*": "allow", "curl * | sh": "deny" }), "curl x | sh")).toBe(
      "deny",
    );
  });

  test("[S-265] [E-202] a bare deny decides per part only", async () => {
    const listed = policy({ "*": "deny", ls: "allow", "git *": "allow" });
    expect(await effectOf(listed, "ls && git log")).toBe("allow");
    expect(await effectOf(listed, "ls && curl x")).toBe("deny");
  });

  test("[S-265] an unmatched part is denied", async () => {
    expect(await effectOf(policy({ "git *": "allow" }), "git log; curl x")).toBe("deny");
  });

  test("a string without a simple command is judged as a whole", async () => {
    expect(await effectOf(policy({ "git *": "allow" }), "X=1")).toBe("deny");
    expect(await effectOf(policy({ "git *": "ask", "*": "allow" }), "X=1")).toBe("allow");
  });
});

describe("strings that cannot be read", () => {
  const unread = ["git log $(", "git log && $CMD", 'git log; eval "$X"', 'git log; bash -c "$X"'];

  test.for(unread)(
    "[T-188] [S-266] [E-202] [B128] %s asks though git is allowed",
    async (command) => {
      expect(await effectOf(policy({ "git *": "allow" }), command)).toBe("ask");
    },
  );

  test.for(unread)("[T-188] [S-266] [E-202] %s is allowed by a bare rule", async (command) => {
    expect(await effectOf(policy({ "*": "allow", "npm *": "ask" }), command)).toBe("allow");
  });

  test("[S-266] an allow on the exact whole string does not allow it", async () => {
    const command = "git log && $CMD";
    expect(await effectOf(policy({ [command]: "allow" }), command)).toBe("ask");
  });

  test.for<Rules>([
    { "*": "allow", "git *": "deny" },
    { "*": "deny", "npm *": "allow" },
    { "*": "deny", "git *": "ask" },
  ])("[S-266] a matching deny denies it: %j", async (document) => {
    expect(await effectOf(policy(document), "git log && $CMD")).toBe("deny");
  });

  test("an action without an allow or ask rule stays denied", async () => {
    expect(await effectOf(policy({ "npm *": "deny" }), "git log $(")).toBe("deny");
  });
});

describe("arguments that only a run decides", () => {
  const git = policy({ "*": "ask", "git *": "allow", "git push *": "deny", "git -f*": "ask" });

  test.for([
    "X=push; git $X",
    'X=push; git "$X" origin',
    "git pu${X}sh origin",
    "git p* origin",
    "git {push,x} origin",
    "git $E push origin",
    "git $(echo push) origin",
    "nohup git $X",
    "bash -c 'git $X'",
    '/usr/bin/git $X "origin"',
    "git '-'$X",
    "echo push | xargs git",
    "echo push | xargs -I% git % origin",
    "git log > $X; git $X",
  ])("[S-266] %s asks, for it may become a push", async (command) => {
    expect(await effectOf(git, command)).toBe("ask");
  });

  test.for([
    "git log $X",
    'git commit -m "$X"',
    "git add src/*.ts",
    "git log --format=$X",
    "git ls-files | xargs git add",
    "X=$(git log); git show $X",
  ])("[S-266] %s is allowed, no other rule can match what it becomes", async (command) => {
    expect(await effectOf(git, command)).toBe("allow");
  });

  test("[S-266] a more specific allow that holds for every text wins, one that may not does not", async () => {
    const pushing = policy({
      "git push *": "ask",
      "git push origin *": "allow",
      "git log*": "allow",
      "ls *.txt": "allow",
    });
    expect(await effectOf(pushing, "git push origin $X")).toBe("allow");
    expect(await effectOf(pushing, "git push $X")).toBe("ask");
    expect(await effectOf(pushing, "ls ${X#.txt}")).toBe("deny");
    expect(await effectOf(pushing, "ls $X.txt")).toBe("allow");
    expect(await effectOf(policy({ "ls *.txt*": "allow" }), "ls ${X#.txt}")).toBe("ask");
  });

  test("[S-266] a rule for a file that is written counts for a name that only a run decides", async () => {
    const guarded = policy({ "echo *": "allow", "* > /etc/*": "deny" });
    expect(await effectOf(guarded, "echo hi > out")).toBe("allow");
    expect(await effectOf(guarded, "echo hi > $X")).toBe("ask");
  });

  test.for<[PermissionEffect, Rules, Rules]>([
    ["ask", { "git push *": "deny" }, { "git *": "allow" }],
    ["allow", { "git push *": "ask" }, { "git *": "allow" }],
    ["allow", { "*": "allow", "git push *": "deny" }, {}],
    ["allow", { "git push *": "deny", "git $X": "allow", "git $X *": "allow" }, { "*": "allow" }],
  ])("[S-164] [S-266] %s under %j with flags %j", async ([effect, document, flags]) => {
    expect(await effectOf(policy(document, flags), "git $X")).toBe(effect);
  });

  test("[S-265] an exact whole string is allowed as it stands", async () => {
    const exact = policy({ "git push *": "ask", "git $X": "allow" });
    expect(await effectOf(exact, "git $X")).toBe("allow");
  });
});

test("[S-164] a flag allows what would ask but not what the document denies", async () => {
  const flagged = policy({ "*": "ask", "git push *": "deny" }, { "git *": "allow" });
  expect(await effectOf(flagged, "git log")).toBe("allow");
  expect(await effectOf(flagged, "git log && git push")).toBe("deny");
});

describe("needsParts", () => {
  test("[S-265] where it is false, reading the string never changes the verdict", async () => {
    const effect = fc.constantFrom<PermissionEffect>("allow", "ask", "deny");
    const rule = fc.tuple(fc.constantFrom("*", "**", "git *", "ls", "rm *", "* x"), effect);
    const list = fc.array(rule, { maxLength: 3 }).map((pairs) => Object.fromEntries(pairs));
    const command = fc.constantFrom(
      "ls",
      "git log && rm x",
      "sudo git x",
      "r\\m -f",
      "bash -c 'ls'",
      "$X",
      "A=1",
      "ls $(",
    );
    await fc.assert(
      fc.asyncProperty(list, list, command, async (document, flags, text) => {
        const of = policy(document, flags);
        fc.pre(!needsParts(of, text, "bash"));
        const read = { action: "bash" as const, command: text, ...(await labelCommand(text)) };
        const unread = { action: "bash" as const, command: text, parsed: false, parts: [] };
        expect(evaluatePolicy(of, [unread]).effect).toBe(evaluatePolicy(of, [read]).effect);
      }),
      { numRuns: 500 },
    );
  });

  test.for<[Rules, boolean]>([
    [{}, false],
    [{ "*": "ask" }, false],
    [{ "*": "allow" }, false],
    [{ "*": "ask", "git *": "ask" }, false],
    [{ "*": "allow", "rm *": "deny" }, false],
    [{ "*": "allow", "sh *": "deny" }, true],
    [{ "git *": "allow" }, true],
    [{ "rm *": "allow" }, true],
  ])("for `git push` under %j: %s", ([document, needed]) => {
    expect(needsParts(policy(document), "git push", "bash")).toBe(needed);
  });
});
