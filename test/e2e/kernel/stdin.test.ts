import { readFile } from "node:fs/promises";
import { RunToolStdin, type ToolCallId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createGate } from "../../support/gate.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";
import { findLogs } from "../../support/session-log.ts";

const interactive = (command: string) => ({
  name: "bash",
  arguments: { command, interactive: true },
});

async function start(kernel: TestKernel, attended: boolean) {
  const session = await kernel.createSession();
  const watch = kernel.watch(session, { interactive: attended });
  // Attached before the run begins.
  await watch.event("session_created");
  const runId = await kernel.start(session, "Hi");
  const { payload } = await watch.event("tool_call_started");
  const feed = (data: string | null, eof = false, call: ToolCallId = payload.tool_call_id) =>
    kernel.client.request(RunToolStdin, {
      run_id: runId,
      call_id: call,
      ...(data !== null && { data: Buffer.from(data).toString("base64") }),
      eof,
    });
  return { watch, runId, feed };
}

describe("run.tool_stdin", () => {
  test("[S-149] [T-076] bytes and their end reach the call; only their count is recorded", async () => {
    const kernel = await openTestKernel({
      answers: [
        { calls: [interactive("echo ready; read line; echo got $line; cat")] },
        { text: "done" },
      ],
    });
    const { watch, runId, feed } = await start(kernel, true);
    await watch.output("ready");
    expect(await feed("hunter2\n")).toEqual({ accepted: true });
    await watch.output("got hunter2");
    await feed("rest", true);
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_stdin_submitted").map(({ byte_count }) => byte_count)).toEqual([
      8, 4,
    ]);
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("rest");
  });

  test("[S-049] [S-149] what was typed is not in the log", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [interactive("echo ready; read -r word; echo ok")] }, { text: "done" }],
    });
    const { watch, runId, feed } = await start(kernel, true);
    await watch.output("ready");
    await feed("secret-word\n", true);
    await watch.end(runId);
    const [log] = await findLogs(kernel.project);
    expect(await readFile(log ?? "", "utf8")).not.toContain("secret-word");
  });

  test("[T-076] it is an error after the end of input, after the call and for another call", async () => {
    const gate = createGate();
    const kernel = await openTestKernel({
      answers: [
        { calls: [interactive("echo ready; cat; until [ -e go ]; do sleep 0.02; done")] },
        { text: "x", until: gate.opened },
      ],
    });
    const { watch, runId, feed } = await start(kernel, true);
    await watch.output("ready");
    await feed(null, true);
    const unavailable = { code: "stdin_unavailable" };
    await expect(feed("more")).rejects.toMatchObject(unavailable);
    await kernel.project.write("go", "");
    await watch.event("tool_call_terminated");
    await expect(feed("more")).rejects.toMatchObject(unavailable);
    await expect(feed("more", false, runId as string as ToolCallId)).rejects.toMatchObject(
      unavailable,
    );
    gate.open();
    await watch.end(runId);
    await expect(feed("more")).rejects.toMatchObject({ code: "run_missing" });
  });

  test("[S-256] [T-076] without an interactive client the call sees the end of input at once", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [interactive("cat; echo over")] }, { text: "done" }],
    });
    const { watch, runId } = await start(kernel, false);
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("over");
  });

  test("[S-256] a reading call sees the end of input when the last interactive client leaves", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [interactive("echo ready; cat; echo over")] }, { text: "done" }],
    });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const person = await kernel.connect();
    await person.subscribe(session, { interactive: true }).next();
    const runId = await kernel.start(session, "Hi");
    await watch.output("ready");
    person.close();
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("over");
  });

  test("data that is not base64 or too long is refused", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [interactive("echo ready; cat")] }, { text: "done" }],
    });
    const { watch, runId, feed } = await start(kernel, true);
    await watch.output("ready");
    const wrong = { run_id: runId, call_id: watch.payloads("tool_call_started")[0]?.tool_call_id };
    await expect(
      kernel.client.request(RunToolStdin, { ...wrong, data: "%%%", eof: false } as never),
    ).rejects.toMatchObject({ code: "invalid_params" });
    await expect(feed("x".repeat(64 * 1024 + 1))).rejects.toMatchObject({ code: "invalid_params" });
    await feed(null, true);
    await watch.end(runId);
  });
});
