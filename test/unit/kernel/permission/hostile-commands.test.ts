import type { PermissionEffect, PermissionRule } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { labelCommand } from "../../../../kernel/src/permission/command-labels.ts";
import { evaluatePolicy } from "../../../../kernel/src/permission/evaluate-policy.ts";

/** The answer for `command` where `rm` is what must not slip through. */
async function effectOf(
  rules: Readonly<Record<string, PermissionEffect>>,
  command: string,
): Promise<PermissionEffect> {
  const documentRules = Object.entries(rules).map(
    ([resource, effect]): PermissionRule => ({ action: "bash", resource, effect }),
  );
  const policy = { documentRules, overlayRules: [], workspaceRoot: "/home/me/space" };
  const labels = await labelCommand(command);
  return evaluatePolicy(policy, [{ action: "bash", command, ...labels }]).effect;
}

const HARMLESS = { "*": "ask", "echo *": "allow", "cat *": "allow", "ls *": "allow" } as const;

describe("code that bash runs without a command in sight", () => {
  test.for([
    "x='a[$(rm t)]'; echo $((x))",
    "x='a[$(rm t)]'; ((x)); echo",
    "x=$'a[$\\x28rm t)]'; echo $[x]",
    'x="a[\\$(rm t)]"; echo ${y[x]}',
    "x='a[$(rm t)]'; y=abc; echo ${y:x}",
    "x='a[$(rm t)]'; y[x]=1; echo",
    "x='a[$(rm t)]'; y=([x]=1); echo",
    "x='a[$(rm t)]'; echo ${!x}",
    "x='$(rm t)'; echo ${x@P}",
    "x=$(cat f); echo $((x))",
    "echo $(( $(cat f) ))",
    "for x in 'a[$(rm t)]'; do echo $((x)); done",
    "echo ${x:='a[$(rm t)]'} $((x))",
    "x='a[$(rm t)]'; for ((i=x;i<1;i++)); do echo; done",
    "echo; [[ 'a[$(rm t)]' -eq 0 ]]",
    "x='a[$(rm t)]'; [[ $x -gt 1 ]]; echo",
    "echo; [[ -v 'a[$(rm t)]' ]]",
    "echo; [ -v 'a[$(rm t)]' ]",
    "echo; declare -i x='a[$(rm t)]'",
    "echo; declare -a 'x=($(rm t))'",
    "echo; typeset -n r='a[$(rm t)]'; echo $r",
    "echo; unset 'a[$(rm t)]'",
  ])("[S-266] %j is not allowed by what its commands are allowed", async (command) => {
    expect(await effectOf(HARMLESS, command)).toBe("ask");
  });

  test.for([
    "i=0; while ((i < 3)); do echo $i; i=$((i+1)); done",
    "x=$(cat f); echo $x",
    "a=(1 2); echo ${a[1]} ${#a[@]}",
    "[[ -f a && -n $x ]] && echo",
    "export A=b; echo",
    "cat <<'EOF'\n$(rm t)\nEOF",
    "echo 'a test of `rm`'",
  ])("[S-265] %j is what it seems to be", async (command) => {
    expect(await effectOf(HARMLESS, command)).toBe("allow");
  });
});

describe("variables that decide which program runs", () => {
  test.for([
    "PATH=. ls",
    "PATH=.:$PATH; ls",
    "export PATH=.; ls",
    "for PATH in .; do ls; done",
    "echo ${PATH:=.}; ls",
    "env PATH=. ls",
    "LD_PRELOAD=./x.so ls",
    "BASH_ENV=f ls",
    "GIT_SSH_COMMAND=rm ls",
    "export 'PATH=.'; ls",
  ])("[S-266] %s is not allowed by a rule for ls", async (command) => {
    expect(await effectOf(HARMLESS, command)).toBe("ask");
  });

  test("[S-266] a relative program is another one behind a change of directory", async () => {
    const rules = { "*": "ask", "cd *": "allow", "./check *": "allow" } as const;
    expect(await effectOf(rules, "./check a")).toBe("allow");
    expect(await effectOf(rules, "cd sub && ./check a")).toBe("ask");
  });
});

describe("strings that bash and the grammar cut differently", () => {
  test.for([
    "cat <<E\n`rm t`\nE",
    'cat <<"$X"\n$X\nrm t\n$X',
    "cat <<'\\E'\n\\E\nrm t\nE",
    "cat <<E\n\\\nE\nrm t\nE",
    "echo a\r# x; rm t",
    "echo a\v# x; rm t",
    "echo \n\\\n rm t",
    "x=\\\n rm t\necho",
    "echo $'\\\\'; rm t #'",
    "echo \"${x:-'$(rm t)'}\"",
    'echo "${x:-\'}"; rm t; echo "\'}"',
    "echo `echo \\`rm t\\``",
    "[[ x =~ >(rm t) ]]; echo",
  ])("[S-266] %j is not allowed by what the grammar sees", async (command) => {
    expect(await effectOf(HARMLESS, command)).toBe("ask");
  });
});

describe("spellings of a denied command", () => {
  const denied = { "*": "allow", "rm -rf *": "deny" } as const;

  test.for([
    "rm >/dev/null -rf t",
    "rm </dev/null -rf t",
    "rm 2>&1 -rf t",
    "rm 2>&- -rf t",
    "rm <<E -rf t\nE",
    "a && rm >/dev/null -rf t",
    "time rm >/dev/null -rf t",
    "../../bin/rm -rf t",
    "r\\\nm -rf t",
    "exec {fd}>/dev/null rm -rf t",
    "coproc X { rm -rf t; }",
    "trap 'rm -rf t' EXIT",
    "find . -exec rm -rf t ;",
    "find . -exec env A=1 rm -rf {} +",
    "sudo find . -execdir sudo -u root /bin/rm -rf {} ;",
    "find . -exec sh -c 'rm -rf t' ;",
    "find . -exec bash -c 'true && nice rm -rf \"$1\"' _ {} \\;",
    "find . -name x -exec true \\; -exec sh -c 'eval rm -rf t' \\;",
  ])("[S-265] %j is denied", async (command) => {
    expect(await effectOf(denied, command)).toBe("deny");
  });

  test("[S-264] arguments behind a redirection belong to the command's label", async () => {
    expect(await labelCommand("git >f push x 2>/dev/null y")).toMatchObject({
      parts: ["git push x y", "git push x y >f"],
    });
  });

  test("[S-264] words in braces behind a wrapper stay its arguments", async () => {
    expect(await labelCommand("sudo rm { x")).toMatchObject({ parts: ["rm { x"] });
  });
});

test.for([`${"sudo ".repeat(20_000)}a`, `echo ${"{".repeat(60_000)},`])(
  "[C-016] a long command is labelled in time that grows with its length",
  async (command) => {
    expect(await labelCommand(command)).toHaveProperty("parsed");
  },
);
