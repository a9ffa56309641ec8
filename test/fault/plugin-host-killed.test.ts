import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { payloadsOf, readOnlyLog } from "../support/session-log.ts";
import { bashLine, faultProject, startOffline } from "./support/fault-project.ts";
import { isAlive, waitUntil } from "./support/processes.ts";

describe("a plugin host that is killed in mid-call", () => {
  test("[E-060] [E-063] [T-041] [S-120] fails the call with what it had printed; the run goes on with a new host", async () => {
    const project = await faultProject();
    await project.write("note.txt", "a note\n");
    const run = startOffline(
      project,
      [
        bashLine("echo $$ > shell; echo $PPID > first; echo partial; sleep 600"),
        'call read {"filePath":"note.txt"}',
        "---",
        bashLine("echo $PPID > second; echo whole"),
      ],
      ["-o", "json", "--verbose"],
    );
    await waitUntil(() => run.printed.stdout.includes('"type":"tool_output"'), "output arrived");
    const pidIn = async (name: string) =>
      Number(await readFile(join(project.cwd, name), "utf8"));
    const [first, shell] = [await pidIn("first"), await pidIn("shell")];
    process.kill(first, "SIGKILL");
    expect((await run.result).exitCode).toBe(0);

    const events = await readOnlyLog(project);
    const started = payloadsOf(events, "tool_call_started");
    const ends = new Map(
      payloadsOf(events, "tool_call_terminated").map((end) => [end.tool_call_id, end]),
    );
    const [killed, read, next] = started.map(({ tool_call_id }) => ends.get(tool_call_id));
    expect(killed).toMatchObject({
      outcome: "failed",
      error: { code: "plugin_crashed", message: expect.stringContaining("SIGKILL") },
      result: { output: expect.stringContaining("partial"), retained_output: { incomplete: true } },
    });
    expect(read).toMatchObject({ outcome: "completed" });
    expect(next).toMatchObject({
      outcome: "completed",
      result: { output: expect.stringContaining("whole") },
    });
    expect(await pidIn("second")).not.toBe(first);
    await waitUntil(() => !isAlive(shell), "the killed call's shell has ended");
  });
});
