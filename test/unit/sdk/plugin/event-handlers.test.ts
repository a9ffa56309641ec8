import {
  createManifest,
  definePlugin,
  defineTool,
  type EmitOutcome,
  type HeardEvent,
  type PluginDefinition,
} from "@cookie-agent/sdk/plugin";
import {
  type ContextId,
  type EventPayload,
  HostLog,
  type ParamsOf,
  PluginBusEvent,
  PluginEmit,
  PluginEvent,
  type SessionId,
  ToolsCall,
} from "@cookie-agent/sdk/protocol";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { createGate } from "../../../support/gate.ts";
import { callParams, ID } from "../support/plugin-params.ts";
import { serveInMemory } from "../support/serve-in-memory.ts";

const OTHER = "0198c0de-0000-7000-8000-000000000002" as SessionId;
const runtime = { kind: "node", entry: "dist/x.js" } as const;
const base = { name: "observer", version: "1.0.0" };
const PUBLISHED: EmitOutcome = { name: "n", bus: "published", durable: "published" };

type Json = Record<string, unknown>;

/** A plugin that is served, what its kernel was asked to publish and log, and a way to tell it of events. */
async function observe(definition: Omit<PluginDefinition, "name" | "version">) {
  const emitted: ParamsOf<typeof PluginEmit>[] = [];
  const logged: string[] = [];
  const { kernel, stop } = await serveInMemory(definePlugin({ ...base, ...definition }), {
    prepare(connection) {
      connection.onRequest(PluginEmit, (emission) => {
        emitted.push(emission);
        return { ...PUBLISHED, name: emission.name };
      });
      connection.onNotification(HostLog, ({ message }) => void logged.push(message));
    },
  });
  let seq = 0;
  const tell = async (event: Json & { type: string }, session = ID as SessionId) => {
    seq += 1;
    await kernel.notify(PluginEvent, {
      session_id: session,
      run_id: null,
      context_id: `c-${seq}` as ContextId,
      seq,
      event,
      timestamp: "2026-01-01T00:00:00.000Z",
    });
  };
  return { kernel, emitted, logged, tell, stop };
}

const admitted = (input: string) => ({ type: "user_input_admitted", input });

afterEach(() => {
  vi.useRealTimers();
});

describe("what the manifest says", () => {
  test.for<[string, Omit<PluginDefinition, "name" | "version">, object]>([
    [
      "handlers are the filter",
      { events: { tool_call_started: () => {}, tool_call_terminated: () => {} } },
      { subscribe_events: ["tool_call_started", "tool_call_terminated"] },
    ],
    ["a handler of everything", { onEvent: () => {} }, { subscribe_events: true }],
    ["both", { onEvent: () => {}, events: { run_started: () => {} } }, { subscribe_events: true }],
    ["the bus", { onBusEvent: () => {} }, { subscribe_bus: true }],
    [
      "routes",
      { publish: { bus: true, sessionEvents: true } },
      { publish_bus: true, publish_session_events: true },
    ],
    ["one route", { publish: { bus: true } }, { publish_bus: true }],
    ["none", { events: {}, publish: {} }, {}],
  ])("[E-033] [E-038] %s", ([, definition, capabilities]) => {
    const manifest = createManifest(definePlugin({ ...base, ...definition }), runtime);
    expect(manifest.capabilities).toEqual(capabilities);
    expect(manifest.tools).toEqual([]);
  });

  test.for<[string, Json, string]>([
    [
      "a capability that follows from the code",
      { onEvent: () => {}, capabilities: { subscribe_events: true } },
      "capabilities.subscribe_events: follows from `events or onEvent`",
    ],
    ["an event that is not sent", { events: { text_delta: () => {} } }, "events.text_delta"],
    ["no function", { events: { run_started: true } }, "events.run_started: expected a function"],
  ])("%s is refused by name", ([, definition, problem]) => {
    const plugin = definePlugin({ ...base, ...definition });
    expect(() => createManifest(plugin, runtime)).toThrow(problem);
  });
});

describe("handlers", () => {
  test("each hears its own type, and `onEvent` the rest", async () => {
    const own: HeardEvent<"user_input_admitted">[] = [];
    const rest: EventPayload["type"][] = [];
    const { tell } = await observe({
      events: { user_input_admitted: (event) => void own.push(event) },
      onEvent: ({ payload }) => void rest.push(payload.type),
    });
    await tell(admitted("hi"));
    await tell({ type: "run_completed", final_text: null });
    await tell({ type: "a_later_type" });
    await expect.poll(() => rest).toEqual(["run_completed", "a_later_type"]);
    expect(own).toEqual([
      {
        sessionId: ID,
        runId: null,
        seq: 1,
        timestamp: "2026-01-01T00:00:00.000Z",
        payload: admitted("hi"),
      },
    ]);
  });

  test("[E-144] those of one session run one after another, those of another one beside them", async () => {
    const gate = createGate();
    const trace: string[] = [];
    const { tell } = await observe({
      events: {
        async user_input_admitted({ payload, sessionId }) {
          const name = `${sessionId === ID ? "a" : "b"}${payload.input}`;
          trace.push(`${name} begins`);
          if (name === "a1") await gate.opened;
          trace.push(`${name} ends`);
        },
      },
    });
    await tell(admitted("1"));
    await tell(admitted("2"));
    await tell(admitted("3"), OTHER);
    await expect.poll(() => trace).toEqual(["a1 begins", "b3 begins", "b3 ends"]);
    gate.open();
    await expect.poll(() => trace.slice(3)).toEqual(["a1 ends", "a2 begins", "a2 ends"]);
  });

  test("an error of a handler is logged, and the plugin goes on", async () => {
    const heard: string[] = [];
    const { tell, logged } = await observe({
      events: {
        user_input_admitted({ payload }) {
          heard.push(payload.input);
          if (payload.input === "throw") throw new Error("no such table");
          if (payload.input === "reject") return Promise.reject(new Error("no such row"));
          return undefined;
        },
      },
    });
    for (const input of ["throw", "reject", "fine"]) await tell(admitted(input));
    await expect.poll(() => heard).toEqual(["throw", "reject", "fine"]);
    expect(logged).toEqual([
      "the handler of user_input_admitted failed: no such table",
      "the handler of user_input_admitted failed: no such row",
    ]);
  });

  test("a bus event comes with its author", async () => {
    const heard: unknown[] = [];
    const { kernel } = await observe({ onBusEvent: (event) => void heard.push(event) });
    await kernel.notify(PluginBusEvent, {
      session_id: ID as SessionId,
      context_id: "c" as ContextId,
      plugin: "other",
      name: "news",
      payload: [1, null],
    });
    await expect
      .poll(() => heard)
      .toEqual([{ sessionId: ID, plugin: "other", name: "news", payload: [1, null] }]);
  });

  test("[E-145] a handler that hangs keeps no call waiting, and what piles up behind it is bounded", async () => {
    const gate = createGate();
    let handled = 0;
    const { tell, kernel, logged } = await observe({
      events: {
        async user_input_admitted() {
          handled += 1;
          await gate.opened;
        },
      },
      tools: {
        ping: defineTool({
          description: "Ping.",
          parameters: z.strictObject({}),
          permissionName: "ping",
          call: () => ({ content: "pong" }),
        }),
      },
    });
    for (let i = 0; i < 1_500; i += 1) await tell(admitted(String(i)));
    expect(await kernel.request(ToolsCall, callParams("ping", {}))).toEqual({ content: "pong" });
    expect(handled).toBe(1);
    gate.open();
    await expect.poll(() => handled).toBe(1_025);
    expect(logged).toEqual([
      "events come faster than they are handled; some are dropped",
      "475 events were dropped unhandled",
    ]);
  });

  test("the plugin stops only when a handler that runs is done", async () => {
    const gate = createGate();
    const trace: string[] = [];
    const { tell, stop } = await observe({
      events: {
        async user_input_admitted() {
          trace.push("begins");
          await gate.opened;
          trace.push("ends");
        },
      },
      stop: () => void trace.push("stop"),
    });
    await tell(admitted("1"));
    await expect.poll(() => trace).toEqual(["begins"]);
    const stopped = stop();
    gate.open();
    await stopped;
    expect(trace).toEqual(["begins", "ends", "stop"]);
  });
});

describe("emit", () => {
  test("[E-146] an event's handler publishes under the event's context, and learns what came of it", async () => {
    const outcomes: EmitOutcome[] = [];
    const { tell, emitted } = await observe({
      events: {
        async user_input_admitted(_, { emit }) {
          outcomes.push(await emit("seen", { n: 1 }));
        },
      },
      publish: { bus: true },
    });
    await tell(admitted("hi"));
    await expect.poll(() => outcomes).toEqual([{ ...PUBLISHED, name: "seen" }]);
    expect(emitted).toEqual([
      { session_id: ID, context_id: "c-1", name: "seen", payload: { n: 1 } },
    ]);
  });

  test("[E-148] [S-241] an event that came 4 s ago publishes nothing any more", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const outcomes: EmitOutcome[] = [];
    const gate = createGate();
    let waits = false;
    const { tell, emitted } = await observe({
      events: {
        async user_input_admitted(_, { emit }) {
          waits = true;
          await gate.opened;
          outcomes.push(await emit("late", null));
        },
      },
    });
    await tell(admitted("hi"));
    await expect.poll(() => waits).toBe(true);
    vi.advanceTimersByTime(4_000);
    gate.open();
    await expect.poll(() => outcomes.length).toBe(1);
    expect(outcomes[0]).toMatchObject({ name: "late", bus: "rejected", durable: "rejected" });
    expect(emitted).toEqual([]);
  });

  test("a call publishes under its own context", async () => {
    const { kernel, emitted } = await observe({
      tools: {
        tell: defineTool({
          description: "Tell.",
          parameters: z.strictObject({}),
          permissionName: "tell",
          call: async ({ emit }) => ({ content: (await emit("told", 7)).durable }),
        }),
      },
    });
    const answer = await kernel.request(ToolsCall, callParams("tell", {}));
    expect(answer).toEqual({ content: "published" });
    expect(emitted).toEqual([{ session_id: ID, context_id: "c-1", name: "told", payload: 7 }]);
  });

  test.for<[string, unknown]>([
    ["nothing", undefined],
    ["what JSON cannot express", 1n],
  ])("it does not reject for a payload that is %s", async ([, payload]) => {
    const outcomes: EmitOutcome[] = [];
    const { tell, emitted } = await observe({
      events: {
        async user_input_admitted(_, { emit }) {
          outcomes.push(await emit("odd", payload));
        },
      },
    });
    await tell(admitted("hi"));
    await expect.poll(() => outcomes.length).toBe(1);
    expect(outcomes[0]).toMatchObject({ bus: "rejected", durable: "rejected" });
    expect(outcomes[0]?.reason).toBeTruthy();
    expect(emitted).toEqual([]);
  });
});
