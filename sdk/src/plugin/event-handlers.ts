import type { CookieError } from "../protocol/errors.ts";
import type { EventPayloadOf, EventType } from "../protocol/event.ts";
import type { Capabilities } from "../protocol/manifest.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { Emit } from "./emit.ts";
import type { LogLevel } from "./host-client.ts";

/** What plugins can hear of: every type that sessions record, but for text while a model writes it. */
export type HeardEventType = Exclude<EventType, "text_delta" | "reasoning_delta">;

/** One recorded event; it is on disk. */
export interface HeardEvent<T extends HeardEventType = HeardEventType> {
  readonly sessionId: string;
  /** Null for an event outside a run. */
  readonly runId: string | null;
  /** Grows within a session; types that were not asked for leave gaps. */
  readonly seq: number;
  /** RFC 3339 UTC. */
  readonly timestamp: string;
  /** Its members are those of the session log; a later kernel may bring types that this SDK does not know. */
  readonly payload: EventPayloadOf<T>;
}

/** What another plugin published on the bus. */
export interface HeardBusEvent {
  readonly sessionId: string;
  /** Who published it. */
  readonly plugin: string;
  readonly name: string;
  /** Made by another plugin: check it before use. */
  readonly payload: unknown;
}

/** What a handler may do with what it heard. */
export interface EventContext {
  /** Once per event, within 4 s of its arrival; needs `publish`. */
  readonly emit: Emit;
  /** Writes to the kernel's log; at most 4 KiB of the message are kept. */
  log(level: LogLevel, message: string, fields?: JsonObject): void;
}

/**
 * Hears one event. Handlers of one session run one after another, in the order of its record; an error is logged and
 * never ends the plugin. While one works, at most 1024 more events wait; the rest is dropped and logged.
 */
export type EventHandler<T extends HeardEventType = HeardEventType> = (
  event: HeardEvent<T>,
  context: EventContext,
) => void | Promise<void>;

/** Handlers by event type. */
export type EventHandlers = { readonly [T in HeardEventType]?: EventHandler<T> };

/** What a plugin hears and says; the manifest's subscriptions and routes follow from it. */
export interface EventDefinition {
  /** By event type; without `onEvent` nothing else is sent to the plugin. */
  readonly events?: EventHandlers;
  /** Every event that has no handler of its own in `events`. */
  readonly onEvent?: EventHandler;
  /** What other plugins publish on the bus: not recorded, and some of it may be missed. */
  onBusEvent?(event: HeardBusEvent, context: EventContext): void | Promise<void>;
  /** Where `emit` publishes: on the bus, in the session's record, or both; default: nowhere. */
  readonly publish?: { readonly bus?: boolean; readonly sessionEvents?: boolean };
}

const DERIVED = {
  subscribe_events: "events or onEvent",
  subscribe_bus: "onBusEvent",
  publish_bus: "publish.bus",
  publish_session_events: "publish.sessionEvents",
} as const;

/** The manifest's share of an event definition (E-033, E-038). */
export function eventCapabilities(
  { events = {}, onEvent, onBusEvent, publish = {} }: EventDefinition,
  authored: Capabilities = {},
  refuse: (member: string, problem: string) => CookieError,
): Pick<Capabilities, keyof typeof DERIVED> {
  for (const [capability, source] of Object.entries(DERIVED)) {
    if (!Object.hasOwn(authored, capability)) continue;
    throw refuse(`capabilities.${capability}`, `follows from \`${source}\`; leave it out`);
  }
  const types = Object.keys(events);
  for (const type of types) {
    if (type === "text_delta" || type === "reasoning_delta") {
      throw refuse(`events.${type}`, "text is not sent to plugins while a model writes it");
    }
    if (typeof events[type as HeardEventType] !== "function") {
      throw refuse(`events.${type}`, "expected a function");
    }
  }
  return {
    ...(onEvent !== undefined ? { subscribe_events: true } : {}),
    ...(onEvent === undefined && types.length > 0 ? { subscribe_events: types } : {}),
    ...(onBusEvent !== undefined ? { subscribe_bus: true } : {}),
    ...(publish.bus === true ? { publish_bus: true } : {}),
    ...(publish.sessionEvents === true ? { publish_session_events: true } : {}),
  };
}
