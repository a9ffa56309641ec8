import { PluginBusEvent, PluginEvent } from "../protocol/event-methods.ts";
import type { ContextId, SessionId } from "../protocol/scalars.ts";
import type { Connection } from "../rpc/connection.ts";
import { createEmit, DELIVERY_LIFE_MS } from "./emit.ts";
import type {
  EventContext,
  EventDefinition,
  EventHandler,
  HeardEvent,
  HeardEventType,
} from "./event-handlers.ts";
import { EventIntake } from "./event-intake.ts";
import { writeLog } from "./host-client.ts";

/** Hands what the kernel tells of sessions to the plugin's handlers; to be called before the connection listens. */
export function serveEvents(connection: Connection, definition: EventDefinition): EventIntake {
  const intake = new EventIntake((problem) => writeLog(connection, "error", problem));
  const contextOf = (delivery: { session_id: SessionId; context_id: ContextId }): EventContext => ({
    emit: createEmit(connection, {
      sessionId: delivery.session_id,
      contextId: delivery.context_id,
      lifeMs: DELIVERY_LIFE_MS,
    }),
    log: (level, message, fields) => writeLog(connection, level, message, fields),
  });
  connection.onNotification(PluginEvent, (delivery) => {
    const { type } = delivery.event;
    const handler = handlerOf(definition, type);
    if (handler === undefined) return;
    const event = {
      sessionId: delivery.session_id,
      runId: delivery.run_id,
      seq: delivery.seq,
      timestamp: delivery.timestamp,
      payload: delivery.event,
    } as unknown as HeardEvent;
    const context = contextOf(delivery);
    intake.take(delivery.session_id, type, () => handler(event, context));
  });
  connection.onNotification(PluginBusEvent, (delivery) => {
    const { session_id: sessionId, plugin, name, payload } = delivery;
    if (definition.onBusEvent === undefined) return;
    const context = contextOf(delivery);
    intake.take(sessionId, `the bus event ${name}`, () =>
      definition.onBusEvent?.({ sessionId, plugin, name, payload }, context),
    );
  });
  return intake;
}

/** Each handler takes the type that it stands under. */
function handlerOf(
  { events = {}, onEvent }: EventDefinition,
  type: string,
): EventHandler | undefined {
  const own = Object.hasOwn(events, type) ? events[type as HeardEventType] : undefined;
  return (own as EventHandler | undefined) ?? onEvent;
}
