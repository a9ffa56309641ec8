import { type ContextId, type SessionId, ToolsCall } from "@cookie-agent/sdk/protocol";
import { Connection, createMemoryPair } from "@cookie-agent/sdk/rpc";
import * as fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ContextGrants } from "../../../../kernel/src/plugin/context-grants.ts";
import { EmitQuota } from "../../../../kernel/src/plugin/emit-quota.ts";
import { EmitTokens } from "../../../../kernel/src/plugin/emit-tokens.ts";
import { NO_EVENT_CLAIMS } from "../../../../kernel/src/plugin/event-claims.ts";
import type { EventServices } from "../../../../kernel/src/plugin/event-services.ts";
import { PLUGIN_LIMITS } from "../../../../kernel/src/plugin/plugin-limits.ts";
import { publish } from "../../../../kernel/src/plugin/publication.ts";
import { RequestDesk } from "../../../../kernel/src/plugin/request-desk.ts";
import { RequestSlots } from "../../../../kernel/src/plugin/request-slots.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { noEvents } from "./event-services-fixture.ts";
import { callOf, never, SESSION } from "./open-host.ts";

const A = createId<SessionId>();
const B = createId<SessionId>();

/** A clock that stands still until the test moves it. */
function createClock() {
  const clock = { nowMs: 1_000 };
  return { clock, now: () => clock.nowMs };
}

function openTokens() {
  const { clock, now } = createClock();
  const tokens = new EmitTokens(PLUGIN_LIMITS.emitTokens, now);
  const deliver = (sessionId: SessionId) => {
    const id = tokens.issue(sessionId);
    tokens.activate(id);
    return id;
  };
  return { tokens, clock, deliver };
}

describe("a token", () => {
  test("[E-148] [S-241] it serves once, and is known as spent for 30 s", () => {
    const { tokens, clock, deliver } = openTokens();
    const id = deliver(A);
    expect(tokens.redeem(id)).toEqual({ state: "good", sessionId: A });
    expect(tokens.redeem(id)).toEqual({ state: "spent", sessionId: A });
    clock.nowMs += 29_999;
    expect(tokens.redeem(id)).toEqual({ state: "spent", sessionId: A });
    clock.nowMs += 1;
    expect(tokens.redeem(id)).toEqual({ state: "unknown" });
  });

  test("[E-148] it lives 5 s from its delivery, however long it waited for that", () => {
    const { tokens, clock } = openTokens();
    const ids = [tokens.issue(A), tokens.issue(A)] as const;
    clock.nowMs += 60_000;
    tokens.activate(ids[0]);
    tokens.activate(ids[1]);
    clock.nowMs += 4_999;
    expect(tokens.redeem(ids[0])).toEqual({ state: "good", sessionId: A });
    clock.nowMs += 1;
    expect(tokens.redeem(ids[1])).toEqual({ state: "spent", sessionId: A });
  });

  test("[E-148] a plugin that answers before the delivery is noted may use it", () => {
    const { tokens } = openTokens();
    expect(tokens.redeem(tokens.issue(A))).toEqual({ state: "good", sessionId: A });
  });

  test("[E-148] one whose notification was not written is spent", () => {
    const { tokens } = openTokens();
    const id = tokens.issue(A);
    tokens.spend(id);
    expect(tokens.redeem(id)).toEqual({ state: "spent", sessionId: A });
  });

  test("[E-148] of 1025 the oldest is spent, and of the spent ones 256 are remembered", () => {
    const { tokens, deliver } = openTokens();
    const ids = Array.from({ length: 1025 }, () => deliver(A));
    expect(tokens.redeem(ids[0] as ContextId).state).toBe("spent");
    expect(tokens.redeem(ids[1] as ContextId).state).toBe("good");
    for (const id of ids.slice(2, 257)) tokens.spend(id);
    expect(tokens.redeem(ids[0] as ContextId).state).toBe("unknown");
    expect(tokens.redeem(ids[1] as ContextId).state).toBe("spent");
  });

  test("[E-148] that of a request lasts until its answer, at latest until its time is over", () => {
    const { tokens, clock } = openTokens();
    const [open, answered, late] = [createId(), createId(), createId()] as ContextId[] as [
      ContextId,
      ContextId,
      ContextId,
    ];
    for (const id of [open, answered]) tokens.open(id, A);
    tokens.open(late, B);
    tokens.spend(answered);
    expect(tokens.redeem(answered)).toEqual({ state: "spent", sessionId: A });
    clock.nowMs += 600_000;
    tokens.endWithin(late, 100);
    clock.nowMs += 100;
    expect(tokens.redeem(late)).toEqual({ state: "spent", sessionId: B });
    expect(tokens.redeem(open)).toEqual({ state: "good", sessionId: A });
  });

  test("[E-148] no flood of events takes the token of an open request", () => {
    const { tokens, deliver } = openTokens();
    const id = createId<ContextId>();
    tokens.open(id, A);
    for (let i = 0; i < 3_000; i += 1) deliver(B);
    expect(tokens.redeem(id)).toEqual({ state: "good", sessionId: A });
  });
});

describe("a request", () => {
  test("[E-148] one that has timed out may publish for 100 ms more, and not when it was given up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const [near, far] = createMemoryPair();
    const rpc = new Connection({ transport: near, side: "kernel" });
    const plugin = new Connection({ transport: far, side: "plugin" });
    const contexts: ContextId[] = [];
    plugin.onRequest(ToolsCall, (params) => {
      contexts.push(params.context_id);
      return new Promise(() => undefined);
    });
    rpc.listen();
    plugin.listen();
    const grants = new ContextGrants();
    const tokens = new EmitTokens(PLUGIN_LIMITS.emitTokens);
    grants.emitTokens = tokens;
    const desk = new RequestDesk({
      rpc,
      grants,
      slots: new RequestSlots(8, 8),
      limits: PLUGIN_LIMITS,
      onDeaf: () => undefined,
      onIdle: () => undefined,
    });
    const ask = () => {
      const { params } = callOf("slow");
      const facts = {
        plugin: "p",
        sessionId: SESSION,
        rootSessionId: SESSION,
        runId: params.run_id,
        toolCallId: params.invocation_id,
      };
      const outcome = desk.ask(ToolsCall, {
        signal: never(),
        timeoutMs: 1_000,
        context: { scope: "call", facts },
        params: (contextId) => ({ ...params, context_id: contextId }),
      });
      return expect(outcome).rejects.toMatchObject({ code: "timeout" });
    };
    const failures = [ask(), ask(), ask()];
    await vi.waitFor(() => expect(contexts).toHaveLength(3), { interval: 0 });
    const [soon, late, unused] = contexts as [ContextId, ContextId, ContextId];
    await vi.advanceTimersByTimeAsync(1_099);
    expect(tokens.redeem(soon).state).toBe("good");
    await vi.advanceTimersByTimeAsync(1);
    expect(tokens.redeem(late).state).toBe("spent");
    await vi.advanceTimersByTimeAsync(2_000);
    await Promise.all(failures);
    expect(tokens.redeem(unused).state).toBe("spent");
    rpc.close();
    plugin.close();
  });
});

describe("a publication", () => {
  const claims = { ...NO_EVENT_CLAIMS, publishBus: true, publishSessionEvents: true };
  function openPublisher(services: EventServices) {
    const { tokens, deliver } = openTokens();
    const noted: string[] = [];
    const options = {
      plugin: "p",
      claims,
      grants: new ContextGrants(),
      tokens,
      quota: new EmitQuota(PLUGIN_LIMITS.emitQuota),
      services: { ...services, note: (sessionId: SessionId) => void noted.push(sessionId) },
    };
    const send = (contextId: ContextId) =>
      publish({ session_id: A, context_id: contextId, name: "n", payload: null }, options);
    return { send, deliver, noted };
  }

  test("[E-146] in a session that cannot be written takes the other route, and says why", async () => {
    const { send, deliver } = openPublisher(noEvents());
    expect(await send(deliver(A))).toEqual({
      name: "n",
      bus: "published",
      durable: "rejected",
      reason: "the session cannot be written now",
    });
  });

  test("[E-149] under a context that is unknown says so, and is noted nowhere", async () => {
    const { send, noted } = openPublisher(noEvents());
    expect(await send(createId<ContextId>())).toEqual({
      name: "n",
      bus: "rejected",
      durable: "rejected",
      reason: "the context is unknown; use one of a delivery or a request",
    });
    expect(noted).toEqual([]);
  });
});

describe("a quota", () => {
  test("[E-151] [S-242] 40 events pass in a second and session, the next one when the first is over", () => {
    const { clock, now } = createClock();
    const quota = new EmitQuota(PLUGIN_LIMITS.emitQuota, now);
    for (let i = 0; i < 40; i += 1) {
      expect(quota.take(A, 10)).toBe(true);
      clock.nowMs += 10;
    }
    expect(quota.take(A, 10)).toBe(false);
    expect(quota.take(B, 10)).toBe(true);
    clock.nowMs = 1_999;
    expect(quota.take(A, 10)).toBe(false);
    clock.nowMs = 2_000;
    expect(quota.take(A, 10)).toBe(true);
    expect(quota.take(A, 10)).toBe(false);
  });

  test("[E-151] [S-242] 4 MiB pass in a minute and session, and not one byte more", () => {
    const { clock, now } = createClock();
    const quota = new EmitQuota(PLUGIN_LIMITS.emitQuota, now);
    for (let i = 0; i < 16; i += 1) expect(quota.take(A, 256 * 1024)).toBe(true);
    clock.nowMs += 59_999;
    expect(quota.take(A, 1)).toBe(false);
    expect(quota.take(B, 1)).toBe(true);
    clock.nowMs += 1;
    expect(quota.take(A, 4 * 1024 * 1024)).toBe(true);
    expect(quota.take(A, 1)).toBe(false);
  });

  test("[E-151] no window of a second or a minute ever holds more than its limit", () => {
    const attempt = fc.record({
      waitMs: fc.integer({ min: 0, max: 700 }),
      bytes: fc.integer({ min: 0, max: 40 }),
    });
    const limits = { eventsPerSecond: 3, bytesPerMinute: 100 };
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 60 }), (attempts) => {
        const { clock, now } = createClock();
        const quota = new EmitQuota(limits, now);
        const taken: { atMs: number; bytes: number }[] = [];
        for (const { waitMs, bytes } of attempts) {
          clock.nowMs += waitMs;
          if (quota.take(A, bytes)) taken.push({ atMs: clock.nowMs, bytes });
          const within = (ms: number) => taken.filter(({ atMs }) => clock.nowMs - atMs < ms);
          expect(within(1_000).length).toBeLessThanOrEqual(3);
          const ofMinute = within(60_000).reduce((sum, each) => sum + each.bytes, 0);
          expect(ofMinute).toBeLessThanOrEqual(100);
        }
      }),
    );
  });
});
