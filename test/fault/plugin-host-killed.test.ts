import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { payloadsOf, readOnlyLog } from "../support/session-log.ts";
import { faultProject, startRun, withModel } from "./support/fault-project.ts";
import { waitUntil } from "./support/processes.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });

describe("a plugin host that is killed in mid-call", () => {
  test("[plugin killed: tool call, plugin] [E-060] [E-061] [E-063] [T-041] fails the call with what it had printed; the run goes on with a new host", async () => {
    const project = await faultProject();
    await project.write("note.txt", "a note\n");
    const server = await withModel(
      project,
      "openai-chat",
      {
        calls: [
          bash("echo $PPID >> first; echo partial; sleep 600"),
          { name: "read", arguments: { filePath: "note.txt" } },
        ],
      },
      { calls: [bash("echo $PPID >> second; echo whole")] },
      { text: "Done." },
    );
    const args = ["-m", "custom.test/scripted", "-o", "json", "--verbose"];
    const run = startRun(project, "Work.", args);
    await waitUntil(() => run.printed.stdout.includes('"type":"tool_output"'), "output arrived");
    // a command that ran twice would leave two lines, which are no number
    const hostIn = async (name: string) => Number(await readFile(join(project.cwd, name), "utf8"));
    const first = await hostIn("first");
    process.kill(first, "SIGKILL");
    expect((await run.result).exitCode).toBe(0);

    const events = await readOnlyLog(project);
    const ends = new Map(
      payloadsOf(events, "tool_call_terminated").map((end) => [end.tool_call_id, end]),
    );
    const [killed, read, next] = payloadsOf(events, "tool_call_started").map(({ tool_call_id }) =>
      ends.get(tool_call_id),
    );
    expect(killed).toMatchObject({
      outcome: "failed",
      error: { code: "plugin_crashed", message: expect.stringContaining("SIGKILL") },
      result: { output: expect.stringContaining("partial"), retained_output: { incomplete: true } },
    });
    expect(JSON.stringify(server.requests[1]?.body)).toMatch(/partial.*\[error plugin_crashed\]/);
    expect(read).toMatchObject({ outcome: "completed" });
    expect(next).toMatchObject({
      outcome: "completed",
      result: { output: expect.stringContaining("whole") },
    });
    expect(await hostIn("first")).toBe(first);
    expect(await hostIn("second")).toBeGreaterThan(0);
    expect(await hostIn("second")).not.toBe(first);
  });
});
