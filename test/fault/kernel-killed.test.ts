import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isAlive } from "../support/is-alive.ts";
import type { Answer, Wire } from "../support/model-server.ts";
import { jsonLines } from "../support/run-cookie.ts";
import { payloadsOf, readLog } from "../support/session-log.ts";
import type { TempProject } from "../support/temp-project.ts";
import { faultProject, killHard, startRun, withModel } from "./support/fault-project.ts";
import { completeBytes, eventsIn, openEnds, sessionOf, whenLines } from "./support/log-lines.ts";
import { callIdsOf, pairingProblems } from "./support/paired-results.ts";
import { processesOf, waitUntil } from "./support/processes.ts";

const SCRIPTED = ["-m", "custom.test/scripted"];

/** Appends its name to a file: what ran, and how often. */
function leaveMark(name: string, rest = ""): { name: string; arguments: object } {
  return { name: "bash", arguments: { command: `echo ${name} >> marks; ${rest}` } };
}

const turns: readonly Answer[] = [
  { text: "Two at once.", calls: [leaveMark("a", "sleep 0.1"), leaveMark("b")] },
  {
    calls: [{ name: "write", arguments: { filePath: "note.txt", content: "n\n" } }, leaveMark("c")],
  },
  { text: ["One ", "more."], calls: [leaveMark("d", "echo out; sleep 0.1")] },
  { text: "Done." },
];

async function marksOf(project: TempProject): Promise<string[]> {
  const text = await readFile(join(project.cwd, "marks"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

describe("a kernel that is killed in mid-run", () => {
  const moments = (wire: Wire, lines: readonly number[]) => lines.map((count) => ({ wire, count }));

  test.for([
    ...moments("openai-chat", [1, 5, 8, 10, 13, 16, 20, 24, 28]),
    ...moments("anthropic", [7, 11, 15, 22, 27]),
  ])(
    "[killed: append, tool call] [B116] [S-095] [S-097] [S-249] [T-043] loses nothing, repeats nothing and goes on after $count lines ($wire)",
    async ({ wire, count }) => {
      const project = await faultProject();
      const server = await withModel(project, wire);
      const script = [...turns];
      server.otherwise(() => script.shift() ?? { text: "Done." });
      const first = startRun(project, "Work.", [...SCRIPTED, "-o", "json"]);
      const log = await whenLines(project, count, first);
      const { stdout } = await killHard(first);

      const before = completeBytes(log);
      const eventsBefore = eventsIn(before);
      const seqsBefore = new Set(eventsBefore.map(({ seq }) => seq));
      for (const line of jsonLines(stdout.slice(0, stdout.lastIndexOf("\n") + 1))) {
        if (line["type"] === "event")
          expect(seqsBefore).toContain((line["event"] as { seq: number }).seq);
      }
      const open = openEnds(eventsBefore);
      await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");
      const marks = await marksOf(project);
      const started = payloadsOf(eventsBefore, "tool_call_started").map(
        ({ presentation }) => presentation.primary_argument,
      );
      for (const mark of marks) {
        expect(started).toContainEqual(expect.stringContaining(`echo ${mark} >>`));
      }

      const requests = server.requests.length;
      server.otherwise({ text: "Resumed." });
      const resumed = await startRun(project, "Go on.", [
        ...SCRIPTED,
        "--resume-session",
        sessionOf(log),
      ]).result;
      expect(resumed).toMatchObject({ exitCode: 0, stdout: "Resumed.\n", stderr: "" });

      expect(completeBytes(log).subarray(0, before.byteLength).equals(before)).toBe(true);
      expect(await marksOf(project)).toEqual(marks);
      expect(new Set(marks).size).toBe(marks.length);
      const events = await readLog(log);
      expect(openEnds(events)).toEqual({ runs: [], calls: [] });
      const added = events.filter(({ seq }) => !seqsBefore.has(seq));
      expect(payloadsOf(added, "run_interrupted")).toEqual(
        open.runs.map(() => ({ type: "run_interrupted", reason: "daemon restart" })),
      );
      const settled = payloadsOf(added, "tool_call_terminated");
      expect(settled.map(({ tool_call_id }) => tool_call_id)).toEqual(open.calls);
      for (const { outcome, result, error } of settled) {
        expect({ outcome, result, code: error?.code }).toEqual({
          outcome: "interrupted",
          result: null,
          code: "prepared_capability_lost",
        });
      }
      const next = server.requests.at(-1);
      expect(server.requests).toHaveLength(requests + 1);
      expect(next && pairingProblems(next)).toEqual([]);
      const committed = payloadsOf(events, "model_turn_committed").flatMap(({ turn }) =>
        turn.content.filter(({ type }) => type === "tool_call"),
      );
      expect(next && callIdsOf(next)).toHaveLength(committed.length);
    },
  );

  test.for<Wire>(["openai-chat", "anthropic"])(
    "[killed: tool call] [B116] [S-097] [T-043] a long command is ended, recorded as interrupted and not repeated (%s)",
    async (wire) => {
      const project = await faultProject();
      const server = await withModel(project, wire, {
        calls: [leaveMark("long", "echo $$ > shell; sleep 600"), leaveMark("short")],
      });
      const first = startRun(project, "Work.", SCRIPTED);
      const shell = join(project.cwd, "shell");
      let pid = 0;
      await waitUntil(async () => {
        pid = Number(await readFile(shell, "utf8").catch(() => ""));
        return pid > 0;
      }, "the command runs");
      const log = await whenLines(project, 1, first);
      await waitUntil(
        async () => payloadsOf(await readLog(log), "tool_call_terminated").length === 1,
        "the short call has ended",
      );
      await killHard(first);
      await waitUntil(() => !isAlive(pid), "the shell has ended");
      await waitUntil(() => processesOf(project).length === 0, "nothing of the run is left");

      server.enqueue({ text: "Resumed." });
      const resumed = await startRun(project, "Go on.", [
        ...SCRIPTED,
        "--resume-session",
        sessionOf(log),
      ]).result;
      expect(resumed).toMatchObject({ exitCode: 0, stdout: "Resumed.\n", stderr: "" });
      expect((await marksOf(project)).sort()).toEqual(["long", "short"]);
      const calls = payloadsOf(await readLog(log), "tool_call_terminated");
      expect(calls.map(({ outcome }) => outcome)).toEqual(["completed", "interrupted"]);
      expect(calls[1]?.error).toMatchObject({
        code: "prepared_capability_lost",
        message: expect.stringContaining("daemon restart"),
      });
      const next = server.requests.at(-1);
      expect(next && pairingProblems(next)).toEqual([]);
      expect(JSON.stringify(next?.body)).toContain("interrupted by a daemon restart");
    },
  );
});
