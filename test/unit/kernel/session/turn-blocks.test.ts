import type { ClientKey, EventPayload, RunSelection } from "@cookie-agent/sdk/protocol";
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

test("[S-048] an error of the engine behind a turn fails the run, and the turn that was shown is in the log", async () => {
  const { services } = await openSessions();
  const { config } = services.facts;
  const sessionTitle = {
    ...config.sessionTitle,
    get generateOnFirstTurn(): boolean {
      throw new Error("an error of the engine");
    },
  };
  const facts = { ...services.facts, config: { ...config, sessionTitle } };
  const sessions = new SessionRegistry({ ...services, facts });
  const actor = await sessions.create(selection);
  const { tail } = await actor.subscribe({ cursor: 0 });
  await actor.startRun({
    clientRunId: "a" as ClientKey,
    selection,
    input: "hello",
    maxTurns: null,
  });
  const payloads: EventPayload[] = [];
  for await (const item of tail ?? []) {
    if (!("payload" in item)) continue;
    payloads.push(item.payload);
    if (item.payload.type === "run_failed") break;
  }
  expect(payloads.slice(-4)).toMatchObject([
    { type: "text_delta", text: "Offline session" },
    {
      type: "model_turn_committed",
      turn: { content: [{ type: "text", text: "Offline session" }] },
    },
    { type: "model_usage_recorded" },
    { type: "run_failed", error: { code: "engine", message: "the run hit an internal error" } },
  ]);
  await sessions.close();
});
