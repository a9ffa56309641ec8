import {
  EventsSubscribe,
  EventsSubscription,
  isCookieError,
  type ParamsOf,
  type ResultInput,
  type SessionId,
  type StoredEvent,
  ToolOutputDelta,
  ToolOutputGap,
  ToolOutputSnapshot,
} from "@cookie-agent/sdk/protocol";
import type { SessionActor } from "../session/session-actor.ts";
import type { OutputNotice } from "../tool/output-notice.ts";
import type { ClientServices } from "./client-services.ts";
import { followBus } from "./plugin-events.ts";
import type { Route } from "./route.ts";
import type { SubscriberPort } from "./subscriber-port.ts";

type Tail = AsyncIterable<StoredEvent | { readonly gap: number }> & { close(): void };

export function registerEventMethods(
  route: Route,
  { sessions, outputs, bus }: ClientServices,
  port: SubscriberPort,
): void {
  const current = new Map<SessionId, () => void>();
  followBus(bus, port, (sessionId) => current.has(sessionId));

  const subscribe = async (
    actor: SessionActor,
    { session_id, cursor, limit, interactive, outputs: wanted }: ParamsOf<typeof EventsSubscribe>,
  ): Promise<ResultInput<typeof EventsSubscribe>> => {
    const { events, more, tail } = await actor.subscribe({
      cursor: cursor ?? 0,
      ...(limit === undefined ? {} : { limit }),
    });
    if (more) return { events, more };
    if (tail === undefined) return { events, live: false };

    // Attached before the tail that this one replaces lets go: nobody left in between.
    const detach = interactive ? actor.attachInteractive() : () => undefined;
    current.get(session_id)?.();
    const output = wanted === false ? null : outputs.subscribe(session_id);
    const end = () => {
      tail.close();
      output?.close();
      detach();
      forget();
      if (current.get(session_id) === end) current.delete(session_id);
    };
    current.set(session_id, end);
    const forget = port.onEnd(end);
    const active_outputs = outputs
      .active(session_id)
      .map(({ toolCallId, streams }) => ({ call_id: toolCallId, streams }));
    // The tail follows the answer, so that a reader meets them in that order (D-060).
    setImmediate(() => {
      void pumpEvents(port, session_id, tail).finally(end);
      if (output !== null) void pumpOutput(port, session_id, output).catch(() => output.close());
    });
    return { events, active_outputs, live: true };
  };
  route(
    EventsSubscribe,
    (params) => sessions.read(params.session_id, (actor) => subscribe(actor, params)),
    { bulky: true },
  );
}

/**
 * Hands events on as fast as the connection takes them; the tail's own bound turns a slow reader into a gap. So does an
 * event that no frame holds: whoever asks for it is told why it cannot have it.
 */
async function pumpEvents(port: SubscriberPort, sessionId: SessionId, tail: Tail): Promise<void> {
  const tellGap = (seq: number) =>
    port.notify(EventsSubscription, {
      type: "gap",
      session_id: sessionId,
      last_delivered_seq: seq,
    });
  let unsentSeq = 0;
  try {
    for await (const item of tail) {
      if ("gap" in item) return await tellGap(item.gap);
      unsentSeq = item.seq;
      await port.notify(EventsSubscription, { type: "event", event: item });
    }
  } catch (error) {
    // Of a connection that ended nobody need hear; its own cleanup follows.
    if (isCookieError(error, "resource_limit")) await tellGap(unsentSeq - 1).catch(() => undefined);
  }
}

async function pumpOutput(
  port: SubscriberPort,
  session_id: SessionId,
  notices: AsyncIterable<OutputNotice>,
): Promise<void> {
  for await (const notice of notices) {
    const position = { session_id, call_id: notice.toolCallId, stream: notice.stream };
    switch (notice.kind) {
      case "snapshot":
        await port.notify(ToolOutputSnapshot, {
          ...position,
          start_offset: notice.startOffset,
          end_offset: notice.endOffset,
          chunks: notice.chunks.map(encodeChunk),
        });
        break;
      case "delta":
        await port.notify(ToolOutputDelta, { ...position, ...encodeChunk(notice) });
        break;
      case "gap":
        await port.notify(ToolOutputGap, { ...position, next_offset: notice.nextOffset });
        break;
    }
  }
}

function encodeChunk(chunk: { byteOffset: number; data: Uint8Array }): {
  byte_offset: number;
  data: string;
} {
  return { byte_offset: chunk.byteOffset, data: Buffer.from(chunk.data).toString("base64") };
}
