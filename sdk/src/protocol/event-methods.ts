import * as z from "zod";
import { fromPlugin, notification, request, toPlugin } from "./method.ts";
import {
  boundedText,
  ContextId,
  EventName,
  EventValue,
  PluginName,
  RunId,
  SessionId,
  Timestamp,
} from "./scalars.ts";

/** Bounds of one publication (E-151); beyond them it is dropped or rejected, never a malformed frame. */
export const EMIT_LIMITS = {
  nameCharacters: 128,
  payloadBytes: 256 * 1024,
  eventBytes: 272 * 1024,
} as const;

/** A recorded event of a session, for subscribers; text and reasoning deltas are never among them (E-140). */
export const PluginEvent = notification(
  "plugin/event",
  toPlugin({
    session_id: SessionId,
    /** Null for an event outside a run. */
    run_id: RunId.nullable(),
    /** Good for one `plugin/emit` within 5 s. */
    context_id: ContextId,
    seq: z.int().min(1),
    event: z.looseObject({ type: z.string() }),
    timestamp: Timestamp,
  }),
);

/** What another plugin published: not durable, no cursor, no guarantee (E-141). */
export const PluginBusEvent = notification(
  "plugin/bus_event",
  toPlugin({
    session_id: SessionId,
    /** Good for one `plugin/emit` within 5 s. */
    context_id: ContextId,
    plugin: PluginName,
    name: EventName,
    payload: EventValue,
  }),
);

const emission = fromPlugin({
  session_id: SessionId,
  context_id: ContextId,
  name: z.string(),
  payload: EventValue,
});

const RouteOutcome = z.enum(["published", "dropped", "rejected"]);

/** What became of a publication on each route; a route that the plugin does not declare is `rejected` (E-146). */
export const EmitResult = z.object({
  name: z.string(),
  bus: RouteOutcome,
  durable: RouteOutcome,
  /** Why a declared route did not take it; absent when every declared one did. */
  reason: boundedText(1, 1024).optional(),
});
export type EmitResult = z.infer<typeof EmitResult>;

/** Publishes on the routes that the plugin declares, once per context (E-146…E-149). */
export const PluginEmit = request("plugin/emit", emission, EmitResult);
/** The same without an id; answered by `plugin/emit_result`. */
export const PluginEmitNotice = notification("plugin/emit", emission);
/** What became of a publication that was sent as a notification. */
export const PluginEmitResult = notification("plugin/emit_result", EmitResult);
