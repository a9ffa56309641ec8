import type { Notification, ParamsInput, SessionId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { followBus } from "../../../../kernel/src/daemon/plugin-events.ts";
import { PluginBus } from "../../../../kernel/src/event/plugin-bus.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { createGate } from "../../../support/gate.ts";

const FOLLOWED = createId<SessionId>();

test("[E-141] a connection that takes no more keeps the newest 256 events of the sessions it follows", async () => {
  const bus = new PluginBus();
  const gate = createGate();
  const sent: unknown[] = [];
  const cleanups: (() => void)[] = [];
  const port = {
    async notify<N extends Notification>(_: N, params: ParamsInput<N>) {
      sent.push((params as { payload: unknown }).payload);
      await gate.opened;
    },
    onEnd: (cleanup: () => void) => {
      cleanups.push(cleanup);
      return () => undefined;
    },
  };
  followBus(bus, port, (sessionId) => sessionId === FOLLOWED);
  const publish = (payload: number, sessionId = FOLLOWED) =>
    bus.published({ sessionId, plugin: "p", name: "n", payload });

  publish(0);
  await expect.poll(() => sent).toEqual([0]);
  for (let payload = 1; payload <= 1_000; payload += 1) publish(payload);
  publish(-1, createId<SessionId>());
  gate.open();
  await expect.poll(() => sent.length).toBe(257);
  expect(sent).toEqual([0, ...Array.from({ length: 256 }, (_, index) => 745 + index)]);

  for (const cleanup of cleanups) cleanup();
  publish(2_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toHaveLength(257);
});
