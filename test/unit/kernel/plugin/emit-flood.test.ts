import {
  type ContextId,
  type EmitResult,
  PluginEmitNotice,
  PluginEmitResult,
  PluginPing,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { Connection, createMemoryPair } from "@cookie-agent/sdk/rpc";
import { expect, test } from "vitest";
import { serveEmit } from "../../../../kernel/src/plugin/serve-emit.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { createListener } from "../../../support/listener-plugin.ts";
import { entryFor, type OpenedHost, openHost, SESSION } from "./open-host.ts";

/** A subscriber that publishes at each event, with other limits than usual. */
async function publishing(limits: NonNullable<Parameters<typeof openHost>[0]["limits"]>) {
  const listener = await createListener("listener", {
    on: { user_input_admitted: [{ name: "news" }] },
  });
  const opened = await openHost({
    entries: [
      entryFor("listener", {
        launch: { kind: "path", directory: listener.directory },
        config: { ...listener.config },
      }),
    ],
    limits,
  });
  await opened.host.activateSession();
  record(opened, 1);
  const journal = await listener.until(({ result }) => result !== undefined);
  return { ...opened, result: journal.flatMap(({ result }) => result ?? [])[0] };
}

function record({ bus }: OpenedHost, seq: number): void {
  bus.recorded({
    session_id: SESSION,
    run_id: null,
    seq,
    timestamp: "2026-01-01T00:00:00.000Z",
    payload: { type: "user_input_admitted", input: "hi" },
  });
}

test("[E-148] [S-241] a token whose life is over is refused, and noted in its session", async () => {
  const emitTokens = { lifeMs: 0, active: 1024, spent: 256, spentMs: 30_000 };
  const { result, notes, published } = await publishing({ emitTokens });
  expect(result).toMatchObject({ bus: "rejected", durable: "rejected" });
  expect(notes.map(({ kind, sessionId }) => [kind, sessionId])).toEqual([
    ["context_mismatch", SESSION],
  ]);
  expect(published).toEqual([]);
});

test("[E-151] beyond its rate a plugin's event is dropped by the bus, rejected by the log and noted", async () => {
  const emitQuota = { eventsPerSecond: 0, bytesPerMinute: 1_000 };
  const { result, notes, published } = await publishing({ emitQuota });
  expect(result).toMatchObject({ bus: "dropped", durable: "rejected" });
  expect(notes.map(({ kind, sessionId }) => [kind, sessionId])).toEqual([
    ["rate_limited", SESSION],
  ]);
  expect(published).toEqual([]);
});

test("answers to a flood that nobody reads are given up beyond 1024", async () => {
  const [near, far] = createMemoryPair();
  const kernel = new Connection({ transport: near, side: "kernel" });
  const plugin = new Connection({ transport: far, side: "plugin" });
  const answered: EmitResult[] = [];
  plugin.onRequest(PluginPing, () => ({}));
  plugin.onNotification(PluginEmitResult, (result) => void answered.push(result));
  let served = 0;
  serveEmit(kernel, () => async ({ name }) => {
    served += 1;
    return { name, bus: "published", durable: "published" };
  });
  kernel.listen();
  // The plugin does not listen yet: what the kernel writes waits at its end.
  for (let i = 0; i < 5_000; i += 1) {
    await plugin.notify(PluginEmitNotice, {
      session_id: createId<SessionId>(),
      context_id: "c" as ContextId,
      name: `event ${i}`,
      payload: null,
    });
  }
  await expect.poll(() => served).toBe(5_000);
  plugin.listen();
  // Its answer comes behind all that was written before.
  await kernel.request(PluginPing, {});
  expect(answered.length).toBeGreaterThanOrEqual(1_024);
  expect(answered.length).toBeLessThan(2_000);
  kernel.close();
  plugin.close();
});
