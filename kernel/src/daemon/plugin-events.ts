import { EventsPlugin, type SessionId } from "@cookie-agent/sdk/protocol";
import type { BusEvent, PluginBus } from "../event/plugin-bus.ts";
import type { SubscriberPort } from "./subscriber-port.ts";

/** Bus events that may wait for one connection; the oldest make room, since nothing is promised of them (S 14.3). */
const CAPACITY = 256;

/** Hands a connection what plugins publish in the sessions that it follows (D 6). */
export function followBus(
  bus: PluginBus,
  port: SubscriberPort,
  follows: (sessionId: SessionId) => boolean,
): void {
  const waiting: BusEvent[] = [];
  let pumping = false;
  const pump = async () => {
    try {
      for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
        const { sessionId, plugin, name, payload } = event;
        if (!follows(sessionId)) continue;
        await port.notify(EventsPlugin, { session_id: sessionId, plugin, name, payload });
      }
    } catch {
      // the connection ended; it has left the bus already
    }
    pumping = false;
  };
  const leave = bus.join({
    onPublished(event) {
      if (!follows(event.sessionId)) return;
      if (waiting.length >= CAPACITY) waiting.shift();
      waiting.push(event);
      if (pumping) return;
      pumping = true;
      setImmediate(() => void pump());
    },
  });
  port.onEnd(leave);
}
