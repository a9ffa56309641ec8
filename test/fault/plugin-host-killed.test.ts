import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SessionCompact } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { writeHookPlugins } from "../support/hook-plugin.ts";
import { openTestKernel } from "../support/open-test-kernel.ts";
import { payloadsOf, readOnlyLog } from "../support/session-log.ts";
import { faultProject, startRun, withModel } from "./support/fault-project.ts";
import { onlyLog } from "./support/log-lines.ts";
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

  test("[plugin killed: artifact] [T-132] keeps what it had printed of a flood, whole and readable", async () => {
    const project = await faultProject();
    await withModel(
      project,
      "openai-chat",
      { calls: [bash("echo $PPID > host; seq 1 60000; echo > printed; sleep 600")] },
      { text: "Done." },
    );
    const run = startRun(project, "Work.", [
      "-m",
      "custom.test/scripted",
      "-o",
      "json",
      "--verbose",
    ]);
    const printed = () => run.printed.stdout.match(/"type":"tool_output"/g)?.length ?? 0;
    await waitUntil(() => existsSync(join(project.cwd, "printed")) && printed() > 0, "it prints");
    process.kill(Number(await readFile(join(project.cwd, "host"), "utf8")), "SIGKILL");
    expect((await run.result).exitCode).toBe(0);
    const [end] = payloadsOf(await readOnlyLog(project), "tool_call_terminated");
    expect(end).toMatchObject({ outcome: "failed", error: { code: "plugin_crashed" } });
    const kept = end?.result?.retained_output;
    expect(kept).toMatchObject({ incomplete: true });
    const stdout = kept?.streams.find(({ name }) => name === "stdout");
    const log = (await onlyLog(project)) ?? "";
    const bytes = await readFile(join(dirname(log), "artifacts", stdout?.sha256 ?? ""), "utf8");
    expect(Buffer.byteLength(bytes)).toBe(stdout?.byte_length);
    expect(bytes.length).toBeGreaterThan(0);
    const whole = Array.from({ length: 60_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(whole.startsWith(bytes)).toBe(true);
  });

  test.for([
    [false, "done"],
    [true, "failed"],
  ] as const)(
    "[plugin killed: compaction] [E-163] in a hook before a summary (required: %j): it is %s, and the conversation stays usable",
    async ([required, what]) => {
      const kernel = await openTestKernel({
        answers: [
          { text: "Tall towers. ".repeat(300) },
          { text: "They talked." },
          { text: "more" },
        ],
        prepare: (project) =>
          writeHookPlugins(project, [
            {
              name: "guard",
              hooks: { session_before_compact: (_facts, { crash }) => crash() },
              ...(required && { keys: "required = true" }),
            },
          ]),
      });
      const { sessionId } = await kernel.run("Tell me about towers.");
      const result = await kernel.client.request(SessionCompact, {
        session_id: sessionId,
        focus: null,
      });
      expect(result.compacted).toBe(what === "done");
      const { end } = await kernel.run("Go on.", { session: sessionId });
      expect(end.type).toBe("run_completed");
    },
  );
});
