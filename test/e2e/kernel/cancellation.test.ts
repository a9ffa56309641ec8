import { readdir } from "node:fs/promises";
import { RunCancel, type RunId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { pick, type Wire } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
} from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
const NEVER = new Promise<void>(() => undefined);

async function cancel(kernel: TestKernel, runId: RunId, reason?: string): Promise<boolean> {
  const { cancelled } = await kernel.client.request(RunCancel, {
    run_id: runId,
    ...(reason !== undefined && { reason }),
  });
  return cancelled;
}

async function start(kernel: TestKernel, interactive = false) {
  const session = await kernel.createSession();
  const watch = kernel.watch(session, { interactive });
  const runId = await kernel.start(session, "Hi");
  return { session, watch, runId };
}

describe("run.cancel", () => {
  test("[S-148] while the model streams: the attempt is abandoned and nothing of it is kept", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "half an answer", until: NEVER }] });
    const { watch, runId } = await start(kernel);
    await watch.event("text_delta");
    expect(await cancel(kernel, runId, "stop it")).toBe(true);
    expect(await watch.end(runId)).toEqual({ type: "run_cancelled", reason: "stop it" });
    expect(watch.types.slice(-2)).toEqual(["attempt_abandoned", "run_cancelled"]);
    expect(watch.payloads("attempt_abandoned")[0]?.error).toBeNull();
    expect(watch.types).not.toContain("model_turn_committed");
  });

  test("[S-148] is idempotent: one terminal event, and false once the run has ended", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("deaf"),
      answers: [{ calls: [{ name: "ignore_cancel", arguments: { ms: 60_000 } }] }],
    });
    const { watch, runId } = await start(kernel);
    // A call that is cancelled before its plugin has it ends at once.
    await watch.output("working");
    // the call is given two seconds to end, so that the run is active when the second cancellation comes
    const answers = await Promise.all([cancel(kernel, runId, "a"), cancel(kernel, runId, "b")]);
    expect(answers).toEqual([true, true]);
    expect(await watch.end(runId)).toEqual({ type: "run_cancelled", reason: "a" });
    expect(await cancel(kernel, runId)).toBe(false);
    expect(watch.types.filter((type) => type === "run_cancelled")).toHaveLength(1);
  });

  test("[S-148] while an approval waits: it is cancelled and the calls never run", async () => {
    const kernel = await openTestKernel({
      agents: { primary: agentDocument({ ...ALLOW_ALL, bash: "ask" }) },
      answers: [{ calls: [bash("touch one"), bash("touch two")] }],
    });
    const session = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Hi");
    await watch.event("approval_escalated");
    await cancel(kernel, runId);
    expect(await watch.end(runId)).toEqual({ type: "run_cancelled", reason: null });
    expect(watch.payloads("approval_cancelled")).toEqual([
      expect.objectContaining({ reason_code: "request_cancelled" }),
    ]);
    expect(watch.payloads("tool_call_terminated").map(({ outcome }) => outcome)).toEqual([
      "cancelled",
      "cancelled",
    ]);
    expect(await readdir(kernel.project.cwd)).toEqual([]);
  });

  test("[T-042] [S-148] [S-120] while tools run: they end as cancelled with what they printed", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("slow"),
      answers: [
        {
          calls: [bash("echo started; sleep 60"), { name: "wait_one", arguments: { ms: 60_000 } }],
        },
      ],
    });
    const { watch, runId } = await start(kernel);
    await watch.output("started");
    await cancel(kernel, runId);
    expect(await watch.end(runId)).toEqual({ type: "run_cancelled", reason: null });
    const ends = watch.payloads("tool_call_terminated");
    expect(ends.map(({ outcome, error }) => [outcome, error?.code])).toEqual([
      ["cancelled", "cancelled"],
      ["cancelled", "cancelled"],
    ]);
    expect(ends[0]?.result?.output).toContain("started");
    expect(ends[0]?.result?.retained_output).toMatchObject({ incomplete: true });
    expect(ends[1]?.error?.message).toMatch(/never ran/);
  });

  test("[S-148] a tool that does not listen is abandoned after two seconds", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("deaf"),
      answers: [{ calls: [{ name: "ignore_cancel", arguments: { ms: 60_000 } }] }],
    });
    const { watch, runId } = await start(kernel);
    // A call that is cancelled before its plugin has it ends at once.
    await watch.output("working");
    await cancel(kernel, runId);
    await watch.end(runId);
    expect(watch.payloads("tool_call_terminated")[0]).toMatchObject({ outcome: "cancelled" });
  });

  test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
    "[B116] the request after a cancelled tool run is whole on the wire %s",
    async (wire) => {
      const kernel = await openTestKernel({
        wire,
        answers: [
          { text: "Working", calls: [bash("echo on; sleep 60"), bash("echo b; sleep 60")] },
        ],
      });
      const { session, watch, runId } = await start(kernel);
      await watch.output("on");
      await cancel(kernel, runId);
      await watch.end(runId);
      kernel.server.enqueue({ text: "ok" });
      const { end } = await kernel.run("Go on", { session });
      expect(end).toEqual({ type: "run_completed", final_text: "ok" });
      expect(unanswered(wire, kernel.server.requests[1]?.body)).toEqual([]);
    },
  );
});

/** Call ids of a request body that have no result in it. */
function unanswered(wire: Wire, body: unknown): unknown[] {
  const calls: unknown[] = [];
  const results: unknown[] = [];
  if (wire === "openai-responses") {
    for (const item of pick(body, "input") as unknown[]) {
      if (pick(item, "type") === "function_call") calls.push(pick(item, "call_id"));
      if (pick(item, "type") === "function_call_output") results.push(pick(item, "call_id"));
    }
  } else {
    for (const message of pick(body, "messages") as unknown[]) {
      const content = pick(message, "content");
      const parts = Array.isArray(content) ? (content as unknown[]) : [];
      for (const part of parts) {
        if (pick(part, "type") === "tool_use") calls.push(pick(part, "id"));
        if (pick(part, "type") === "tool_result") results.push(pick(part, "tool_use_id"));
      }
      for (const call of (pick(message, "tool_calls") ?? []) as unknown[]) {
        calls.push(pick(call, "id"));
      }
      if (pick(message, "role") === "tool") results.push(pick(message, "tool_call_id"));
    }
  }
  expect(calls).toHaveLength(2);
  return calls.filter((id) => !results.includes(id));
}
