import { describe, expect, test } from "vitest";
import { type CookieProcess, jsonLines, runScript, startCookie } from "../../support/run-cookie.ts";
import { payloadsOf, readOnlyLog } from "../../support/session-log.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

const SLOW = 'call bash {"command":"sleep 60"}';

/** A run whose call prints without end, seen from its first output. */
async function startSlowRun(project: TempProject): Promise<CookieProcess> {
  const cookie = startCookie(project, [
    "run",
    "--json",
    "--verbose",
    "-m",
    "offline/script",
    "--permission-mode=yolo",
    'call bash {"command":"while :; do echo tick; sleep 0.1; done"}',
  ]);
  await new Promise<void>((resolve) => {
    cookie.child.stdout.on("data", () => {
      if (cookie.printed.stdout.includes('"tool_output"')) resolve();
    });
    cookie.child.once("close", () => resolve());
  });
  return cookie;
}

describe("a run that is stopped", () => {
  test("[C-223] by --max-turns ends with 4 after its terminal event", async () => {
    const project = await useProject();
    const turn = 'call read {"filePath":"."}';

    const result = await runScript(project, `${turn}\n---\n${turn}\n---\n${turn}`, [
      "--max-turns=2",
      "-ojson",
    ]);

    expect(result.exitCode).toBe(4);
    expect(result.stderr).toContain("the limit of 2 model turns was reached (--max-turns)");
    expect(jsonLines(result.stdout).at(-1)).toMatchObject({
      type: "summary",
      status: "cancelled",
      exit_code: 4,
      turns: 2,
      cancellation: null,
    });
    const log = await readOnlyLog(project);
    expect(log.at(-1)?.payload).toMatchObject({ type: "run_cancelled", reason: "turns" });
  });

  test("[C-223] a run that needs exactly --max-turns completes", async () => {
    const result = await runScript(
      await useProject(),
      'call read {"filePath":"."}\n---\nsay done',
      ["--max-turns=2"],
    );

    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
  });

  test("[C-223] by --timeout ends with 4 and says so", async () => {
    const project = await useProject();

    const result = await runScript(project, SLOW, ["--timeout=1"]);

    expect(result).toMatchObject({ exitCode: 4, stdout: "" });
    expect(result.stderr).toBe("error: cancelled: the run took longer than 1 s (--timeout)\n");
    const log = await readOnlyLog(project);
    expect(log.at(-1)?.payload).toMatchObject({ type: "run_cancelled", reason: "timeout" });
    // a machine may need the second for coming as far as the call
    expect(payloadsOf(log, "tool_call_terminated").map(({ outcome }) => outcome)).toEqual(
      payloadsOf(log, "tool_call_started").map(() => "cancelled"),
    );
  });

  test.for(["SIGINT", "SIGTERM"] as const)(
    "[C-223] by %s ends with 4 after its terminal event",
    async (signal) => {
      const project = await useProject();
      const { child, result } = await startSlowRun(project);
      child.kill(signal);

      const { exitCode, stdout, stderr } = await result;

      expect(exitCode).toBe(4);
      expect(stderr).toContain("cancelled by the user");
      expect(jsonLines(stdout).at(-1)).toMatchObject({
        type: "summary",
        status: "cancelled",
        cancellation: "user",
      });
      const log = await readOnlyLog(project);
      expect(log.at(-1)?.payload).toMatchObject({ type: "run_cancelled", reason: "user" });
    },
  );

  test("[C-223] a second SIGINT ends the process at once with 130", async () => {
    const { child, result } = await startSlowRun(await useProject());
    // both wait for it when it goes on
    for (const signal of ["SIGSTOP", "SIGINT", "SIGTERM", "SIGCONT"] as const) child.kill(signal);

    expect(await result).toMatchObject({ exitCode: 130 });
  });

  test("a run whose reader went away is cancelled", async () => {
    const project = await useProject();
    const { child, result } = await startSlowRun(project);
    child.stdout.destroy();

    expect(await result).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining("cancelled: the output cannot be written any more"),
    });
    const log = await readOnlyLog(project);
    expect(log.at(-1)?.payload).toMatchObject({ type: "run_cancelled", reason: "output" });
  });
});
