import type { Capabilities } from "@cookie-agent/sdk/protocol";

/** What a plugin hears of sessions and may publish in them (E-033). */
export interface EventClaims {
  /** True: every type; false: none; else these types. */
  readonly events: boolean | ReadonlySet<string>;
  readonly bus: boolean;
  readonly publishBus: boolean;
  readonly publishSessionEvents: boolean;
}

export const NO_EVENT_CLAIMS: EventClaims = {
  events: false,
  bus: false,
  publishBus: false,
  publishSessionEvents: false,
};

/** A member that is absent is as in `otherwise`. */
export function eventClaims(
  {
    subscribe_events: events,
    subscribe_bus: bus,
    publish_bus: publishBus,
    publish_session_events: publishSessionEvents,
  }: Capabilities = {},
  otherwise: EventClaims = NO_EVENT_CLAIMS,
): EventClaims {
  return {
    events: Array.isArray(events)
      ? events.length > 0 && new Set(events)
      : (events ?? otherwise.events),
    bus: bus ?? otherwise.bus,
    publishBus: publishBus ?? otherwise.publishBus,
    publishSessionEvents: publishSessionEvents ?? otherwise.publishSessionEvents,
  };
}
