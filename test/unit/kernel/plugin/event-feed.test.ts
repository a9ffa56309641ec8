import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type ContextId,
  CookieError,
  type EventPayload,
  Manifest,
  type PluginStatus,
  type SessionId,
  type StoredEvent,
  type ToolCallId,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { EmitTokens } from "../../../../kernel/src/plugin/emit-tokens.ts";
import { type EventClaims, NO_EVENT_CLAIMS } from "../../../../kernel/src/plugin/event-claims.ts";
import { EventFeed } from "../../../../kernel/src/plugin/event-feed.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import {
  createListener,
  type Heard,
  type Listener,
  type ListenerOptions,
} from "../../../support/listener-plugin.ts";
import {
  callOf,
  entryFor,
  eventually,
  never,
  type OpenedHost,
  openHost,
  SESSION,
} from "./open-host.ts";
import { shipped } from "./shipped-fixtures.ts";

/** More than the pipe to a process that does not read can hold of events of this size. */
const LARGE = "x".repeat(32 * 1024);
const callId = createId<ToolCallId>();

function eventOf(seq: number, payload: EventPayload, sessionId: SessionId = SESSION): StoredEvent {
  return {
    session_id: sessionId,
    run_id: null,
    seq,
    timestamp: "2026-01-01T00:00:00.000Z",
    payload,
  };
}

const ordinary = (input = ""): EventPayload => ({
  type: "user_input_admitted",
  input: `.${input}`,
});
const chunk = (message = ""): EventPayload => ({
  type: "tool_call_progress",
  tool_call_id: callId,
  message,
});
const terminal = (): EventPayload => ({
  type: "tool_call_terminated",
  tool_call_id: callId,
  owner: { model_turn_seq: 1, content_index: 0, model_call_id: "c", provider_item_id: null },
  outcome: "completed",
  result: null,
  error: null,
});
const diagnostic = (): EventPayload => ({
  type: "plugin_diagnostic",
  plugin: "other",
  kind: "event_drop",
  message: "full",
  count: 1,
});

interface Subscribed extends OpenedHost {
  readonly listener: Listener;
  /** Records events; each is the next of the session. */
  record(...payloads: EventPayload[]): void;
  status(): PluginStatus | undefined;
}

/** A real subscriber in a process of its own, connected, and a session that records what the test says. */
async function subscribe(options: ListenerOptions = {}): Promise<Subscribed> {
  const listener = await createListener("listener", options);
  const opened = await openHost({
    entries: [
      entryFor("listener", {
        launch: { kind: "path", directory: listener.directory },
        config: { ...listener.config },
        shutdownGraceMs: 100,
      }),
    ],
    limits: { cancelCleanupMs: 100 },
  });
  await opened.host.activateSession();
  let seq = 0;
  return {
    ...opened,
    listener,
    record(...payloads) {
      for (const payload of payloads) {
        seq += 1;
        opened.bus.recorded(eventOf(seq, payload));
      }
    },
    status: () => opened.host.status()[0],
  };
}

/** A subscriber that has stopped reading, and whose pipe is full, so that its queue grows from here on. */
async function subscribeDeaf(): Promise<Subscribed & { readonly fillers: number }> {
  const subscribed = await subscribe({ gated: true });
  subscribed.record(ordinary());
  await subscribed.listener.until(({ blocked }) => blocked === true);
  // Far more than a pipe takes; with the terminal events behind them the queue is full.
  const fillers = Array.from({ length: 64 }, () => ordinary(LARGE));
  subscribed.record(...fillers);
  await nextTurns();
  return { ...subscribed, fillers: fillers.length };
}

/** Long enough for the feed to write what the pipe takes. */
async function nextTurns(): Promise<void> {
  for (let i = 0; i < 200; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

const seqsOf = (heard: readonly Heard[]) => heard.map(({ seq }) => seq);

describe("a subscriber that does not read", () => {
  test("[E-143] [E-144] [S-239] its queue of 1024 drops by class, counts each drop and says which class", async () => {
    const { record, notes, status, listener, fillers } = await subscribeDeaf();
    const plenty = <T>(make: () => T) => Array.from({ length: 1200 }, make);
    record(...plenty(chunk));
    const afterChunks = status()?.dropped_events ?? 0;
    record(...plenty(ordinary), ...plenty(terminal));
    const dropped = status()?.dropped_events ?? 0;
    const noted = (feedClass: string) =>
      notes.filter(({ message }) => message.includes(`: ${feedClass} events`)).length;
    // All chunks gave way, and the oldest of the rest; what came last and matters most is left.
    expect(noted("chunk")).toBe(1200);
    expect(noted("ordinary") + noted("terminal")).toBe(dropped - 1200);
    expect(noted("terminal")).toBe(1200 - 1024);
    expect(afterChunks).toBeGreaterThan(0);
    expect(
      new Set(notes.map(({ kind, plugin, sessionId }) => [kind, plugin, sessionId].join())),
    ).toEqual(new Set([["event_drop", "listener", SESSION].join()]));

    await listener.open();
    const last = 1 + fillers + 3600;
    await listener.until(({ heard }) => heard?.seq === last);
    const heard = await listener.heard();
    expect(heard).toHaveLength(last - dropped);
    expect(seqsOf(heard)).toEqual(seqsOf(heard).sort((a, b) => a - b));
    expect(seqsOf(heard).slice(-1024)).toEqual(
      Array.from({ length: 1024 }, (_, index) => last - 1023 + index),
    );
  });

  test("a diagnostic that finds the queue full is counted, and makes no diagnostic of its own", async () => {
    const { record, notes, status } = await subscribeDeaf();
    record(...Array.from({ length: 1024 }, terminal));
    const before = { dropped: status()?.dropped_events ?? 0, notes: notes.length };
    record(...Array.from({ length: 10 }, diagnostic));
    expect(status()?.dropped_events).toBe(before.dropped + 10);
    expect(notes).toHaveLength(before.notes);
  });

  test("[E-145] a call overtakes the events that wait, however many they are", async () => {
    const { record, host, listener, fillers } = await subscribeDeaf();
    record(...Array.from({ length: 900 }, () => ordinary()));
    const answer = host.call("listener", callOf("listener_publish"), never());
    await listener.open();
    await answer;
    const last = 1 + fillers + 900;
    const journal = await listener.until(({ heard }) => heard?.seq === last);
    const place = journal.findIndex(({ call }) => call !== undefined);
    const before = journal.slice(0, place).filter(({ heard }) => heard !== undefined).length;
    // Before it stands only what the pipe and its stream had taken already.
    expect(before).toBeLessThan(fillers);
    expect(await listener.heard()).toHaveLength(last);
  });

  test("[E-145] the writer lets others write after 64 events in a row", async () => {
    const { record, host, listener } = await subscribe();
    record(...Array.from({ length: 1000 }, () => ordinary()));
    // Made between the first events and the rest: this turn of the event loop only queues them.
    const answers = new Promise<void>((resolve, reject) => {
      setImmediate(() => {
        host.call("listener", callOf("listener_publish"), never()).then(() => resolve(), reject);
      });
    });
    await answers;
    const journal = await listener.until(({ heard }) => heard?.seq === 1000);
    const place = journal.findIndex(({ call }) => call !== undefined);
    expect(place).toBeLessThanOrEqual(128);
  });

  test("[E-143] the host closes although its queue is full, and leaves no process", async () => {
    const { record, host, status, listener } = await subscribeDeaf();
    record(...Array.from({ length: 2000 }, terminal));
    await host.close();
    expect(status()).toMatchObject({ state: "disconnected", pid: null });
    expect(await listener.heard()).toHaveLength(1);
  });

  test("[E-143] another subscriber hears everything meanwhile", async () => {
    const deaf = await createListener("deaf_one", { gated: true });
    const fine = await createListener("fine_one");
    const entry = (listener: Listener) =>
      entryFor(listener.name, {
        launch: { kind: "path", directory: listener.directory },
        config: { ...listener.config },
        shutdownGraceMs: 100,
      });
    const { host, bus } = await openHost({
      entries: [entry(deaf), entry(fine)],
      limits: { cancelCleanupMs: 100 },
    });
    await host.activateSession();
    bus.recorded(eventOf(1, ordinary()));
    await deaf.until(({ blocked }) => blocked === true);
    for (let seq = 2; seq <= 500; seq += 1) bus.recorded(eventOf(seq, ordinary(LARGE)));
    await fine.until(({ heard }) => heard?.seq === 500);
    expect(await fine.heard()).toHaveLength(500);
    expect(await deaf.heard()).toHaveLength(1);
  });
});

describe("one event", () => {
  test("[E-144] that no frame can hold is dropped with a diagnostic, and the next one is heard", async () => {
    const { record, notes, listener, status } = await subscribe();
    record(ordinary("x".repeat(4 * 1024 * 1024)), ordinary("small"));
    await listener.until(({ heard }) => heard?.seq === 2);
    expect(seqsOf(await listener.heard())).toEqual([2]);
    expect(notes.map(({ kind }) => kind)).toEqual(["oversized_event"]);
    expect(status()?.dropped_events).toBe(1);
  });
});

describe("a feed by itself", () => {
  function openFeed(claims: Partial<EventClaims>, problem?: CookieError) {
    const tokens = new EmitTokens({ lifeMs: 5_000, active: 8, spent: 8, spentMs: 30_000 });
    const contexts: ContextId[] = [];
    const feed = new EventFeed({
      plugin: "hearing",
      claims: { ...NO_EVENT_CLAIMS, ...claims },
      tokens,
      bounds: { items: 8, bytes: 1024 * 1024 },
      notify: async (_notification, params) => {
        const { context_id: contextId } = params as unknown as { context_id: ContextId };
        contexts.push(contextId);
        if (problem !== undefined) throw problem;
      },
      note: () => undefined,
      onDropped: () => undefined,
    });
    return { feed, tokens, contexts };
  }

  test("[E-148] the context of an event that could not be written is spent", async () => {
    const tooLarge = new CookieError("resource_limit", "too large");
    const { feed, tokens, contexts } = openFeed({ events: true }, tooLarge);
    feed.onRecorded(eventOf(1, ordinary()));
    await feed.drained();
    expect(contexts.map((contextId) => tokens.redeem(contextId))).toEqual([
      { state: "spent", sessionId: SESSION },
    ]);
  });

  test.for([
    [{ events: true }, 0],
    [{ bus: true }, 1],
  ] as const)("[E-141] with %j it hears %s of what others publish", async ([claims, count]) => {
    const { feed, contexts } = openFeed(claims);
    feed.onPublished({ sessionId: SESSION, plugin: "other", name: "news", payload: null });
    await feed.drained();
    expect(contexts).toHaveLength(count);
  });
});

describe("sessions side by side", () => {
  test("[E-140] [E-144] each keeps its own order", async () => {
    const { bus, listener } = await subscribe();
    const sessions = [createId<SessionId>(), createId<SessionId>(), createId<SessionId>()];
    for (let seq = 1; seq <= 300; seq += 1) {
      for (const session of sessions) bus.recorded(eventOf(seq, ordinary(), session));
    }
    const [last] = sessions.slice(-1);
    await listener.until(({ heard }) => heard?.session_id === last && heard?.seq === 300);
    const heard = await listener.heard();
    for (const session of sessions) {
      expect(seqsOf(heard.filter(({ session_id }) => session_id === session))).toEqual(
        Array.from({ length: 300 }, (_, index) => index + 1),
      );
    }
  });
});

describe("a process that plugins share", () => {
  test("[E-014] [E-140] events come on the channel of the one that subscribed, between the calls of the other", async () => {
    const listener = await createListener("listener", {
      manifest: { runtime: { kind: "node", entry: "main.mjs", group: "core" } },
    });
    const { directory, config } = listener;
    const manifest = Manifest.parse(
      JSON.parse(await readFile(join(directory, "cookie-plugin.json"), "utf8")),
    );
    const { host, bus } = await openHost({
      firstParty: [
        ...(await shipped(["echo"])),
        { id: "listener", manifest, directory, required: false },
      ],
      entries: [entryFor("listener", { launch: { kind: "builtin" }, config: { ...config } })],
    });
    await host.activateSession();
    for (let seq = 1; seq <= 100; seq += 1) {
      bus.recorded(eventOf(seq, ordinary()));
      const answer = await host.call("echo", callOf("echo", { text: String(seq) }), never());
      expect(answer).toEqual({ content: String(seq) });
    }
    await listener.until(({ heard }) => heard?.seq === 100);
    expect(seqsOf(await listener.heard())).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    const [echo, hearing] = host.status();
    expect(echo?.pid).toBe(hearing?.pid);
  });
});

describe("a plugin without a subscription", () => {
  test("it joins nothing", async () => {
    const listener = await createListener("listener", { capabilities: { publish_bus: true } });
    let members = 0;
    const opened = await openHost({
      entries: [entryFor("listener", { launch: { kind: "path", directory: listener.directory } })],
    });
    const { join } = opened.bus;
    opened.bus.join = (member) => {
      members += 1;
      return join.call(opened.bus, member);
    };
    await opened.host.call("listener", callOf("listener_publish"), never());
    await eventually(() => opened.host.status()[0]?.state === "connected");
    expect(members).toBe(0);
  });
});
