import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type ContextId,
  isCookieError,
  type Notification,
  type ParamsInput,
  PluginBusEvent,
  type PluginDiagnosticKind,
  PluginEvent,
  type SessionId,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import type { BusEvent, BusMember } from "../event/plugin-bus.ts";
import { createDeferred, type Deferred } from "../support/deferred.ts";
import { roughJsonSize } from "../support/json-size.ts";
import type { EmitTokens } from "./emit-tokens.ts";
import { type EventClaims, hearsType } from "./event-claims.ts";
import { type FeedBounds, type FeedClass, type FeedItem, FeedQueue } from "./feed-queue.ts";

/** Notifications in a row after which others may write (E-145). */
const TURN = 64;

export interface EventFeedOptions {
  readonly plugin: string;
  readonly claims: EventClaims;
  readonly tokens: EmitTokens;
  readonly bounds: FeedBounds;
  /** Writes one notification; resolves when the pipe has room for more, so a plugin that does not read holds it up. */
  notify<N extends Notification>(notification: N, params: ParamsInput<N>): Promise<void>;
  note(sessionId: SessionId, kind: PluginDiagnosticKind, message: string): void;
  /** Told of each event that the plugin should have had and will not get. */
  onDropped(): void;
}

interface Delivery extends FeedItem {
  readonly sessionId: SessionId;
  send(contextId: ContextId): Promise<void>;
}

/**
 * What one plugin hears, in order, as fast as it reads (E-140…E-145). Taking an event only queues it; a plugin that
 * does not read fills its own queue and nothing else. Requests are written at once, so they overtake what waits here.
 */
export class EventFeed implements BusMember {
  readonly #options: EventFeedOptions;
  readonly #queue: FeedQueue<Delivery>;
  #pumping: Deferred<void> | undefined;
  #stopped = false;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#queue = new FeedQueue(options.bounds);
  }

  onRecorded(event: StoredEvent): void {
    const { payload } = event;
    if (!hearsType(this.#options.claims, payload.type)) return;
    if (payload.type === "plugin_event_added" && payload.plugin === this.#options.plugin) return;
    this.#accept({
      class: classOf(payload.type),
      byteLength: roughJsonSize(payload),
      // Were its loss noted, a plugin that does not read would have its log grow for ever.
      yields: payload.type === "plugin_diagnostic",
      sessionId: event.session_id,
      send: (contextId) =>
        this.#options.notify(PluginEvent, {
          session_id: event.session_id,
          run_id: event.run_id,
          context_id: contextId,
          seq: event.seq,
          event: { ...payload },
          timestamp: event.timestamp,
        }),
    });
  }

  onPublished({ sessionId, plugin, name, payload }: BusEvent): void {
    if (!this.#options.claims.bus || plugin === this.#options.plugin) return;
    this.#accept({
      class: "ordinary",
      byteLength: roughJsonSize(payload),
      sessionId,
      send: (contextId) =>
        this.#options.notify(PluginBusEvent, {
          session_id: sessionId,
          context_id: contextId,
          plugin,
          name,
          payload,
        }),
    });
  }

  /** Resolves when nothing waits any more; never for a plugin that does not read. */
  async drained(): Promise<void> {
    await this.#pumping?.promise;
  }

  /** Takes and sends nothing any more; what waits is forgotten. */
  stop(): void {
    this.#stopped = true;
    this.#queue.clear();
  }

  #accept(delivery: Delivery): void {
    if (this.#stopped) return;
    for (const dropped of this.#queue.push(delivery)) this.#drop(dropped);
    if (this.#pumping !== undefined || this.#queue.size === 0) return;
    this.#pumping = createDeferred();
    // Whoever published goes on with its work first.
    setImmediate(() => void this.#pump());
  }

  #drop({ sessionId, class: feedClass, yields }: Delivery): void {
    const { onDropped, note } = this.#options;
    onDropped();
    if (yields === true) return;
    note(sessionId, "event_drop", `the plugin's event queue is full: ${feedClass} events dropped`);
  }

  async #pump(): Promise<void> {
    for (let inRow = 1; !this.#stopped; inRow += 1) {
      const delivery = this.#queue.shift();
      if (delivery === undefined) break;
      await this.#send(delivery);
      if (inRow % TURN === 0) await nextTurn();
    }
    this.#pumping?.resolve();
    this.#pumping = undefined;
  }

  async #send({ sessionId, send }: Delivery): Promise<void> {
    const { tokens, note, onDropped } = this.#options;
    const contextId = tokens.issue(sessionId);
    try {
      await send(contextId);
      tokens.activate(contextId);
    } catch (error) {
      tokens.spend(contextId);
      if (this.#stopped) return;
      onDropped();
      const isTooLarge = isCookieError(error, "resource_limit");
      const problem = isTooLarge ? "is larger than a frame may be" : "cannot be encoded";
      note(sessionId, "oversized_event", `an event for the plugin ${problem}`);
    }
  }
}

function classOf(type: string): FeedClass {
  if (type === "tool_call_progress") return "chunk";
  return type === "tool_call_terminated" ? "terminal" : "ordinary";
}
