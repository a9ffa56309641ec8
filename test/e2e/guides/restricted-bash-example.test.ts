import { spawnSync } from "node:child_process";
import { chmod, copyFile } from "node:fs/promises";
import {
  ApprovalList,
  ApprovalRespond,
  type ClientKey,
  SessionResume,
} from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { splitWords } from "../../../docs/examples/restricted-bash/split-words.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
} from "../../support/open-test-kernel.ts";
import { runCookie, runScript } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";
import { setUpExample } from "./set-up-example.ts";

test("[E-072] once the project is trusted, restricted-bash is its bash: untrusted, exclusive, as the README says", async () => {
  const project = await useProject();
  const example = await setUpExample("restricted-bash", project);
  await project.write(".cookie-agent/config.toml", example.config);
  const listed = async () => {
    const { stdout } = await runCookie(project, ["tool", "list"]);
    return /^bash .*$/m.exec(stdout)?.[0]?.trim().split(/ +/);
  };
  expect(await listed()).toEqual([
    "bash",
    "builtin.bash",
    "first_party",
    "bash",
    "ask",
    "parallel",
  ]);
  expect(await runCookie(project, ["trust", "--yes"])).toMatchObject({ exitCode: 0 });
  expect(await listed()).toEqual([
    "bash",
    "restricted_bash",
    "untrusted",
    "bash",
    "ask",
    "exclusive",
    "builtin.bash",
  ]);
  expect(await example.type(example.use)).toEqual({ exitCode: 0, printed: example.printed });
  expect(await example.type(example.use.replace("--allowed-tools bash", ""))).toMatchObject({
    exitCode: 3,
  });
});

test("restricted-bash gives a program no environment, and refuses one that lies in the project", async () => {
  const project = await useProject();
  const example = await setUpExample("restricted-bash", project);
  const own = await project.write("tools/mine", "");
  await copyFile("/bin/echo", own);
  await chmod(own, 0o755);
  const programs = `mine = ${JSON.stringify(own)}\nenv = "/usr/bin/env"\n`;
  await project.writeState(
    "config.toml",
    example.config.replace("\n[tools", `${programs}\n[tools`),
  );
  const { stdout } = await runScript(
    project,
    'call bash {"command":"mine hello"}\ncall bash {"command":"env"}\ncall bash {"command":"env false"}',
  );
  const [, mine, empty] = stdout.split("\n");
  expect(mine).toMatch(
    /failed: \[error execution_failed\] nothing was run: .*mine lies inside the project/,
  );
  expect(empty).toMatch(/^- bash: ok: \[stdout\] *\[stderr\]$/);
});

test("[E-075] an approval of the shipped bash is none for restricted-bash: the same command is asked for again", async () => {
  const command = "echo asked";
  const turn = { calls: [{ name: "bash", arguments: { command } }] };
  const before = await openTestKernel({
    agents: { primary: agentDocument({ ...ALLOW_ALL, bash: "ask" }) },
    answers: [turn, { text: "done" }, turn, { text: "done" }],
    prepare: async (project) => {
      const { config } = await setUpExample("restricted-bash", project);
      await project.write(".cookie-agent/config.toml", config);
    },
  });
  const session = await before.createSession({ mode: "ask" });
  const first = await approvedRun(before, session);
  await before.close();

  expect(await runCookie(before.project, ["trust", "--yes"])).toMatchObject({ exitCode: 0 });
  const after = await openTestKernel({ on: before });
  await after.client.request(SessionResume, { session_id: session });
  const second = await approvedRun(after, session);
  expect([first.output, second.output].map((output) => output.includes("asked"))).toEqual([
    true,
    true,
  ]);
  expect(second.fingerprint).not.toBe(first.fingerprint);
  expect(first.labels).toEqual(second.labels);
});

type Session = Awaited<ReturnType<TestKernel["createSession"]>>;

/** A run whose one call is asked for and approved once. */
async function approvedRun({ client, watch: watchOf, start }: TestKernel, session: Session) {
  const watch = watchOf(session, { interactive: true });
  const runId = await start(session, "Go");
  await watch.event("approval_escalated", (_, event) => event.run_id === runId);
  const { approvals } = await client.request(ApprovalList, {
    root_session_id: session,
    status: "escalated",
  });
  expect(approvals).toHaveLength(1);
  const [approval] = approvals;
  if (approval === undefined) throw new Error("no approval waits");
  const { request } = approval;
  await client.request(ApprovalRespond, {
    session_id: session,
    approval_id: request.approval_id,
    request_revision: request.revision,
    operation_fingerprint: request.operation_fingerprint,
    client_response_id: request.approval_id as string as ClientKey,
    decision: "approve_once",
  });
  const ended = await watch.event("tool_call_terminated", (_, event) => event.run_id === runId);
  await watch.end(runId);
  return {
    fingerprint: request.operation_fingerprint,
    labels: request.evaluations.map(({ label }) => label),
    output: ended.payload.result?.output ?? "",
  };
}

const PIECES = [
  "a",
  "B7",
  "-x",
  "=",
  "/",
  ".",
  ":",
  ",",
  "@",
  "%",
  "+",
  "_",
  " ",
  "  ",
  "'",
  '"',
  "\\",
];
const SPECIAL = [
  "$",
  "$HOME",
  "${HOME}",
  "`",
  "(",
  ")",
  "{a,b}",
  "[",
  "]",
  "*",
  "?",
  "~",
  "#",
  "!",
  "!!",
];
const JOINING = [
  ";",
  "|",
  "&",
  "&&",
  "<",
  ">",
  "\n",
  "\t",
  "\r",
  "\0",
  "\u00a0",
  "ä",
  "…",
  "😀",
  "^",
];
const commands = fc
  .array(fc.constantFrom(...PIECES, ...PIECES, ...PIECES, ...SPECIAL, ...JOINING), {
    maxLength: 12,
  })
  .map((pieces) => pieces.join(""));

test("whatever restricted-bash does not refuse, bash splits into the same words", () => {
  fc.assert(
    fc.property(fc.array(commands, { minLength: 200, maxLength: 400 }), (given) => {
      const accepted = given.flatMap((command) => {
        const words = splitWords(command);
        return "refused" in words ? [] : [{ command, words }];
      });
      const script = accepted.map(({ command }) => `printf '%s\\0' ${command} END`).join("\n");
      const { stdout } = spawnSync("bash", ["--noprofile", "--norc", "-c", script], {
        encoding: "utf8",
        cwd: "/",
      });
      const read = stdout.split("\0END\0").slice(0, -1);
      expect(read).toEqual(accepted.map(({ words }) => words.join("\0")));
    }),
    { numRuns: 25 },
  );
});

test.for([
  ["ls -la", ["ls", "-la"]],
  [`grep -n 'a  b' "c d".txt`, ["grep", "-n", "a  b", "c d.txt"]],
  ["echo ''", ["echo", ""]],
  ["  ls  ", ["ls"]],
] as const)("%j is the words %j", ([command, words]) => {
  expect(splitWords(command)).toEqual(words);
});

test.for([
  "a;b",
  "a|b",
  "a&",
  "a>b",
  "a<b",
  "$a",
  "`a`",
  "$(a)",
  '"$a"',
  '"`a`"',
  "a*",
  "a?",
  "[a]",
  "{a,b}",
  "~",
  "a\nb",
  "a\\b",
  "'a",
  '"a',
  "#a",
  "!a",
  '"!a"',
  "a\0b",
  "(a)",
  "\u00a0a",
  "",
  " ",
])("%j is refused", (command) => {
  expect(splitWords(command)).toEqual({ refused: expect.any(String) });
});
