import { CookieError, type ToolCallResult } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  declareDynamic,
  declareTool,
  openRoom,
  preparedAs,
  RUN,
  SESSION,
} from "./dispatch-fixture.ts";

const ECHO = declareTool({ name: "echo" });
const SHELL = declareTool({
  name: "shell",
  output: { mode: "named", streams: ["stdout", "stderr"] },
  stdin_argument: "interactive",
  parameters: {
    type: "object",
    properties: { value: { type: "string" }, interactive: { type: "boolean" } },
  },
});

async function runOne(answer: ToolCallResult, declaration = ECHO, limits = {}) {
  const room = openRoom([declaration], { limits });
  room.plugins.answer = () => Promise.resolve(answer);
  const [outcome] = await room.dispatch([[declaration.name, { value: "x" }]]);
  return { room, outcome };
}

describe("execution of one call", () => {
  test.for([
    ["\n \t", "Tool result"],
    ["two\nlines", "two lines"],
  ])("[T-039] the title %j is shown as %s", async ([title, shown]) => {
    const { outcome } = await runOne({ content: "", title });
    expect(outcome?.result?.title).toBe(shown);
  });

  test("[T-039] what a call shows of its output is at most 2 MiB", async () => {
    const limits = { maxLines: 10_000_000, maxBytes: 10_000_000, maxRetainedBytes: 10_000_000 };
    const { outcome } = await runOne({ content: "x".repeat(4_000_000) }, ECHO, limits);
    expect(Buffer.byteLength(outcome?.result?.output ?? "")).toBeLessThanOrEqual(2 * 1024 * 1024);
  });

  test("[E-090] the request says on whose behalf, with what and within which limits", async () => {
    const { room } = await runOne({ content: "" });
    const [call] = room.plugins.calls;
    expect(call).toMatchObject({
      params: {
        tool: "echo",
        session_id: SESSION,
        run_id: RUN,
        arguments: { value: "x" },
        resource: "echo x",
        prepared: null,
        stdin: false,
        limits: { max_lines: 2000, max_bytes: 51_200 },
      },
      generation: null,
      approvedLabels: ["echo x"],
    });
    expect(call?.params.invocation_id).toBe(room.log.of("tool_call_started")[0]?.tool_call_id);
  });

  test("a bounded result is shown by its preview and kept whole", async () => {
    const { outcome } = await runOne({ content: "one\ntwo\n" }, ECHO, { maxLines: 1 });
    expect(outcome?.result).toMatchObject({
      title: "echo",
      output: expect.stringMatching(/^one\n\[Truncated: 1 lines, 4 bytes omitted\./) as unknown,
      display: null,
      retained_output: { incomplete: false, streams: [{ byte_length: 8, next_offset: 1 }] },
    });
  });

  test("[E-093] declared streams that an answer leaves out are empty artifacts", async () => {
    const { outcome } = await runOne({ outputs: [{ stream: "stderr", text: "oops" }] }, SHELL);
    expect(outcome?.result?.output).toBe("[stdout]\n\n[stderr]\noops");
    expect(outcome?.result?.retained_output?.streams.map(({ byte_length }) => byte_length)).toEqual(
      [0, 4],
    );
  });

  test("[T-037] [S-250] output goes to the capture, messages and display to the log", async () => {
    const room = openRoom([SHELL]);
    room.plugins.answer = async ({ call }) => {
      await call.onProgress({
        output: [
          { stream: "stdout", data: "é" },
          { stream: "stderr", data: "!" },
        ],
        message: "half\u0007way",
        display: "a\n\u001b[1mb",
      });
      await call.onProgress({ output: [{ stream: "stdout", data: "t" }] });
      return { streamed: true };
    };
    const [outcome] = await room.dispatch([["shell", {}]]);
    expect(outcome?.result?.output).toBe("[stdout]\nét\n\n[stderr]\n!");
    expect(room.log.streamed).toEqual([
      {
        type: "tool_call_progress",
        tool_call_id: outcome?.toolCallId,
        message: "half way",
        display: "a\n [1mb",
      },
    ]);
  });

  test("[T-035] a final display stands instead of the live ones, however much they showed", async () => {
    const room = openRoom([SHELL]);
    room.plugins.answer = async ({ call }) => {
      for (let step = 0; step < 70; step += 1) {
        await call.onProgress({ output: [], display: "l".repeat(1000) });
      }
      return { streamed: true, display: "f".repeat(60_000) };
    };
    const [outcome] = await room.dispatch([["shell", {}]]);
    expect(outcome?.result?.display).toBe("f".repeat(60_000));
    expect(outcome?.result?.output).not.toContain("f");
  });

  test("[T-036] a final display keeps newline and tab and stays apart from the output", async () => {
    const { outcome } = await runOne({ content: "for the model", display: "a\n\tb\u0000c" });
    expect(outcome?.result).toMatchObject({ output: "for the model", display: "a\n\tb c" });
  });

  test("[T-130] [E-094] is_error completes and is flagged, failed fails with complete output", async () => {
    const flagged = await runOne({ content: "exit 1", is_error: true, metadata: { exit: 1 } });
    expect(flagged.outcome).toMatchObject({
      outcome: "completed",
      error: null,
      result: { metadata: { exit: 1, plugin: { is_error: true } } },
    });
    const failed = await runOne({ content: "all of it", failed: true });
    expect(failed.outcome).toMatchObject({
      outcome: "failed",
      error: { code: "execution_failed" },
      result: { output: "all of it", retained_output: { incomplete: false } },
    });
  });

  test("[T-041] [S-120] [E-094] a crash keeps the accepted output as incomplete beside the error", async () => {
    const room = openRoom([SHELL]);
    room.plugins.answer = async ({ call }) => {
      await call.onProgress({ output: [{ stream: "stdout", data: "begun\n" }] });
      throw new CookieError("plugin_crashed", "builtin.test exited with SIGKILL");
    };
    const [outcome] = await room.dispatch([["shell", {}]]);
    expect(outcome).toMatchObject({
      outcome: "failed",
      error: { code: "plugin_crashed", message: "builtin.test exited with SIGKILL" },
      result: { output: "[stdout]\nbegun\n\n[stderr]\n", retained_output: { incomplete: true } },
    });
  });

  test.for([
    [{ results: 1, progress: 0 }, "; discarded: 1 late result"],
    [{ results: 0, progress: 1 }, "; discarded: 1 progress update"],
    [{ results: 1, progress: 7 }, "; discarded: 1 late result, 7 progress updates"],
    [{ results: 0, progress: 0 }, ""],
  ] as const)("[T-042] the message of an ended call states %j", async ([discarded, note]) => {
    const room = openRoom([ECHO]);
    room.plugins.answer = () =>
      Promise.reject(new CookieError("timeout", "x".repeat(5000), { data: { discarded } }));
    const [outcome] = await room.dispatch([["echo", {}]]);
    const message = outcome?.error?.message ?? "";
    expect(message).toBe(`${"x".repeat(4096 - note.length)}${note}`);
  });

  test("[E-104] [S-253] the cap of retained output fails the call and keeps what fits", async () => {
    const { outcome } = await runOne({ content: "0123456789" }, ECHO, { maxRetainedBytes: 4 });
    expect(outcome).toMatchObject({
      outcome: "failed",
      error: { code: "resource_limit" },
      result: { output: "0123", retained_output: { incomplete: true } },
    });
  });

  test("[T-047] [E-095] an opt-out answer goes out whole or fails, it is never cut", async () => {
    const page = declareTool({ name: "page", result_truncation: "opt_out" });
    const whole = "line\n".repeat(100_000);
    const { outcome } = await runOne({ content: whole }, page, { maxLines: 1, maxBytes: 1 });
    expect(outcome?.result).toMatchObject({ output: whole, display: null, retained_output: null });
    const over = await runOne({ content: "x".repeat(2 * 1024 * 1024 + 1) }, page);
    expect(over.outcome).toMatchObject({
      outcome: "failed",
      result: null,
      error: { code: "resource_limit" },
    });
  });

  test("[E-106] without anyone to type, an interactive call's input ends at once", async () => {
    const room = openRoom([SHELL]);
    room.plugins.answer = async ({ call }) => {
      await new Promise(setImmediate);
      return { streamed: true, title: String(call.params.stdin) };
    };
    const [outcome] = await room.dispatch([["shell", { interactive: true }]]);
    expect(outcome?.result?.title).toBe("true");
    expect(room.trace.filter((entry) => entry.startsWith("stdin"))).toEqual(["stdin end"]);
    await room.dispatch([["shell", { interactive: true }]], { stdinAttended: true });
    await room.dispatch([["shell", { interactive: false }]]);
    expect(room.trace.filter((entry) => entry.startsWith("stdin"))).toHaveLength(1);
  });

  test("[E-060] [E-086] a token that its process took along is prepared once more", async () => {
    const room = openRoom([declareDynamic("edit")]);
    let generation = 0;
    room.plugins.prepared = () => {
      generation += 1;
      return Promise.resolve(preparedAs("a", { generation, prepared: `token ${generation}` }));
    };
    room.plugins.answer = ({ call }) =>
      call.generation === 1
        ? Promise.reject(new CookieError("prepared_capability_lost", "the token is gone"))
        : Promise.resolve({ content: call.params.prepared ?? "" });
    const [outcome] = await room.dispatch([["edit", {}]]);
    expect(outcome?.result?.output).toBe("token 2");

    room.plugins.answer = () =>
      Promise.reject(new CookieError("prepared_capability_lost", "the token is gone"));
    const [lost] = await room.dispatch([["edit", {}]]);
    expect(lost?.error?.code).toBe("prepared_capability_lost");
  });

  test("[E-086] a second preparation that names something else is operation_changed", async () => {
    const room = openRoom([declareDynamic("edit")]);
    const labels = ["a", "b"];
    room.plugins.prepared = () => Promise.resolve(preparedAs(labels.shift() ?? ""));
    room.plugins.answer = () =>
      Promise.reject(new CookieError("prepared_capability_lost", "the token is gone"));
    const [outcome] = await room.dispatch([["edit", {}]]);
    expect(outcome?.error?.code).toBe("operation_changed");
    expect(room.plugins.discarded).toEqual(["token b"]);
    expect(room.plugins.calls).toHaveLength(1);
  });

  test("[E-082] normalized arguments of a preparation replace the model's and are checked", async () => {
    const room = openRoom([declareDynamic("edit")]);
    room.plugins.prepared = () =>
      Promise.resolve(preparedAs("a", { arguments: { value: "normal" }, title: "Edit a" }));
    await room.dispatch([["edit", { value: "raw" }]]);
    expect(room.plugins.calls[0]?.params.arguments).toEqual({ value: "normal" });
    expect(room.log.of("tool_call_started")[0]?.presentation.title).toBe("Edit a");

    room.plugins.prepared = () => Promise.resolve(preparedAs("a", { arguments: { other: 1 } }));
    const [outcome] = await room.dispatch([["edit", {}]]);
    expect(outcome?.error?.code).toBe("prepare_failed");
    expect(room.plugins.discarded).toEqual(["token a"]);
  });

  test("[T-015] [S-003] [E-088] what waits for an approval can be revalidated where the tool declares it", async () => {
    const declared = openRoom([declareDynamic("edit", { revalidate: true })]);
    const silent = openRoom([declareDynamic("edit")]);
    for (const room of [declared, silent]) {
      room.plugins.prepared = () => Promise.resolve(preparedAs("a"));
      room.gate = async (request) => {
        await request.revalidate?.();
        return { granted: true, source: "user", reason: "user_approved_once" };
      };
      await room.dispatch([["edit", {}]]);
    }
    expect(declared.trace).toContain("revalidate token a");
    expect(silent.trace).not.toContain("revalidate token a");
  });

  test("a change found by the approval is told apart from a refusal", async () => {
    const room = openRoom([ECHO]);
    room.gate = () =>
      Promise.resolve({
        granted: false,
        source: "system",
        reason: "operation_changed",
        feedback: null,
        escalated: true,
      });
    const [outcome] = await room.dispatch([["echo", {}]]);
    expect(outcome?.error?.code).toBe("operation_changed");
  });

  test("[T-045] feedback that is too long is cut, the denial stays readable", async () => {
    const room = openRoom([ECHO]);
    room.gate = () =>
      Promise.resolve({
        granted: false,
        source: "user",
        reason: "user_rejected",
        feedback: '"'.repeat(4096),
        escalated: true,
      });
    const [outcome] = await room.dispatch([["echo", {}]]);
    const denial = JSON.parse(outcome?.error?.message ?? "") as { feedback: string };
    expect(denial).toMatchObject({ kind: "tool_denied", source: "user", reason: "user_rejected" });
    expect(denial.feedback.length).toBeGreaterThan(1500);
  });
});
