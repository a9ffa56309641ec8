import type { EventPayload, ToolCallId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { RunLog } from "../../../../kernel/src/event/run-log.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { askFor, GateSession, NEVER } from "./approval-fixtures.ts";

const submitted: EventPayload = { type: "user_input_submitted", input: "go on" };
const applied: EventPayload = { type: "user_input_applied", user_input_seq: 1 };

function endCall(session: GateSession, name: string, outcome: "completed" | "failed"): void {
  const tool_call_id = createId<ToolCallId>();
  const owner = { model_turn_seq: 1, content_index: 0, model_call_id: "c", provider_item_id: null };
  session.record({
    type: "tool_call_started",
    tool_call_id,
    owner,
    tool: "bash",
    presentation: { title: "Bash", primary_argument: null },
    operation_fingerprint: askFor(name).fingerprint,
    output: { mode: "single" },
  });
  session.record({
    type: "tool_call_terminated",
    tool_call_id,
    owner,
    outcome,
    result: null,
    error: outcome === "failed" ? { code: "execution_failed", message: "no" } : null,
  });
}

/** Asks three times, lets something happen, asks once more. */
async function askAgainAfter(happens: (session: GateSession) => void) {
  const session = new GateSession({ mode: "yolo" });
  for (let turn = 0; turn < 3; turn += 1) await session.decide(askFor("a"), NEVER);
  happens(session);
  return session.decide(askFor("a"), NEVER);
}

describe("what resets the count of identical requests", () => {
  test.for<[string, (session: GateSession) => void]>([
    ["new input", (session) => session.record(submitted)],
    ["steering", (session) => session.record(applied)],
    ["another operation that completed", (session) => endCall(session, "b", "completed")],
  ])("[S-176] %s", async ([, happens]) => {
    expect(await askAgainAfter(happens)).toMatchObject({ granted: true });
  });

  test.for<[string, (session: GateSession) => void]>([
    ["the same operation that completed", (session) => endCall(session, "a", "completed")],
    ["another operation that failed", (session) => endCall(session, "b", "failed")],
  ])("[S-176] not %s", async ([, happens]) => {
    expect(await askAgainAfter(happens)).toMatchObject({ reason: "doom_loop_detected" });
  });

  test("[S-176] requests for other operations do not", async () => {
    const session = new GateSession({ mode: "yolo" });
    for (let turn = 0; turn < 3; turn += 1) {
      await session.decide(askFor("a"), NEVER);
      await session.decide(askFor("b"), NEVER);
    }
    expect(await session.decide(askFor("a"), NEVER)).toMatchObject({ granted: false });
  });
});

test("[S-176] the count survives reading the log again", async () => {
  const session = new GateSession({ mode: "yolo" });
  for (let turn = 0; turn < 3; turn += 1) await session.decide(askFor("a"), NEVER);
  const restored = new GateSession({ mode: "yolo" });
  for (const event of session.events) restored.record(event.payload);
  expect(await restored.decide(askFor("a"), NEVER)).toMatchObject({
    reason: "doom_loop_detected",
  });
});

test("[S-176] a request counts from when it is made, and once", async () => {
  const session = new GateSession({ mode: "yolo" });
  const records = new RunLog(session);
  for (let call = 0; call < 2; call += 1) await session.gate.decide(askFor("a"), NEVER, records);
  expect(session.events).toEqual([]);
  await records.flush();
  expect(await session.decide(askFor("a"), NEVER)).toMatchObject({ granted: true });
  expect(await session.decide(askFor("a"), NEVER)).toMatchObject({ reason: "doom_loop_detected" });
});
