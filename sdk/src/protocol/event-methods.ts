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

/** A recorded event of a session, for subscribers; text and reasoning deltas are never among them (E-140). */
export const PluginEvent = notification("plugin/event", () =>
  toPlugin({
    session_id: SessionId,
    /** Null for an event outside a run. */
    run_id: RunId.nullable(),
    /** Good for one `plugin/emit` within 5 s. */
    context_id: ContextId,
    /** Grows within a session; types that were not asked for leave gaps. */
    seq: z.int().min(1),
    /** The event as its session's log holds it; types of a later kernel may come. */
    event: z.looseObject({
      /** Its kind. */
      type: z.string(),
    }),
    /** When it was recorded. */
    timestamp: Timestamp,
  }),
);

/** What another plugin published: not durable, no cursor, no guarantee (E-141). */
export const PluginBusEvent = notification("plugin/bus_event", () =>
  toPlugin({
    session_id: SessionId,
    /** Good for one `plugin/emit` within 5 s. */
    context_id: ContextId,
    /** Who published it. */
    plugin: PluginName,
    name: EventName,
    payload: EventValue,
  }),
);

const emission = fromPlugin({
  /** The session of the context; any other is refused (E-149). */
  session_id: SessionId,
  /** Of an event, a bus event or an unanswered request; each serves one publication (E-148). */
  context_id: ContextId,
  /** 1 to 128 characters without controls; any other is dropped (E-151). */
  name: z.string(),
  payload: EventValue,
});

const RouteOutcome = z.enum(["published", "dropped", "rejected"]);

/** What became of a publication on each route; a route that the plugin does not declare is `rejected` (E-146). */
export const EmitResult = z.object({
  /** As it was given, cut at 512 bytes. */
  name: z.string(),
  /** To other plugins and clients that listen now. */
  bus: RouteOutcome,
  /** Into the session's log. */
  durable: RouteOutcome,
  /** Why a declared route did not take it; absent when every declared one did. */
  reason: boundedText(1, 1024).optional(),
});
export type EmitResult = z.infer<typeof EmitResult>;

/** Publishes on the routes that the plugin declares, once per context (E-146…E-149). */
export const PluginEmit = request(
  "plugin/emit",
  () => emission,
  () => EmitResult,
);
/** The same without an id; answered by `plugin/emit_result`. */
export const PluginEmitNotice = notification("plugin/emit", () => emission);
/** What became of a publication that was sent as a notification. */
export const PluginEmitResult = notification("plugin/emit_result", () => EmitResult);
