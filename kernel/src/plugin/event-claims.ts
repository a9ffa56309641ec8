import { type Capabilities, EVENT_PAYLOADS } from "@cookie-agent/sdk/protocol";

/** Never sent to plugins (E-140). */
const UNSHOWN: ReadonlySet<string> = new Set(["text_delta", "reasoning_delta"]);

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

export function hearsType({ events }: EventClaims, type: string): boolean {
  return (events === true || (events !== false && events.has(type))) && !UNSHOWN.has(type);
}

/** What of a filter will never be heard, one sentence each. */
export function filterProblems({ subscribe_events: events }: Capabilities = {}): string[] {
  if (!Array.isArray(events)) return [];
  return events
    .filter((type) => UNSHOWN.has(type) || !Object.hasOwn(EVENT_PAYLOADS, type))
    .map((type) =>
      UNSHOWN.has(type)
        ? `capabilities.subscribe_events: ${type} is never sent to plugins`
        : `capabilities.subscribe_events: this kernel knows no event ${type}`,
    );
}

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
