import type { ClientKey, RunSelection } from "@cookie-agent/sdk/protocol";
import { afterEach, expect, test, vi } from "vitest";
import { SessionRegistry } from "../../../../kernel/src/session/session-registry.ts";
import { declareTool, pluginFacts } from "../tool/dispatch-fixture.ts";
import { OFFLINE, openSessions } from "./session-fixture.ts";

const selection = OFFLINE as unknown as RunSelection;

afterEach(() => {
  vi.useRealTimers();
});

test("[S-046] a turn is two blocks: its attempt with what ended before, and its end with what follows", async () => {
  const { services, disk } = await openSessions();
  const currentTool = () => plugins()[0]?.tools[0];
  const plugins = () => [pluginFacts("builtin.test", [declareTool({ name: "echo" })])];
  const sessions = new SessionRegistry({
    ...services,
    facts: { ...services.facts, plugins },
    stages: {
      ...services.stages,
      plugins: {
        ...services.stages.plugins,
        plugins,
        currentTool,
        call: async () => ({ content: "x" }),
      },
    },
  });
  // However long preparing takes, it counts as soon.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const actor = await sessions.create(selection);
  actor.setMode("yolo");
  const { tail } = await actor.subscribe({ cursor: 0 });
  const input = 'call echo {"value":"a"}\ncall echo {"value":"b"}\n---\nsay done';
  await actor.startRun({ clientRunId: "a" as ClientKey, selection, input, maxTurns: null });
  for await (const item of tail ?? []) {
    if ("payload" in item && item.payload.type.startsWith("run_c")) break;
  }
  await sessions.close();
  const committed = disk.blocks.map((block) => block.filter((type) => type !== "text_delta"));
  expect(committed.filter((block) => block.length > 0)).toEqual([
    ["user_input_applied", "model_attempt_started", "model_request_prepared"],
    [
      "model_turn_committed",
      "model_usage_recorded",
      "session_title_committed",
      "tool_call_started",
      "tool_call_started",
      ...["approval_requested", "approval_evaluated", "approval_finalized"],
      ...["approval_requested", "approval_evaluated", "approval_finalized"],
    ],
    ["tool_call_terminated"],
    ["tool_call_terminated", "model_attempt_started", "model_request_prepared"],
    ["model_turn_committed", "model_usage_recorded", "run_completed"],
  ]);
});
