import { PluginEmit } from "../protocol/event-methods.ts";
import type { ResultOf } from "../protocol/method.ts";
import type { ContextId, SessionId } from "../protocol/scalars.ts";
import type { Connection } from "../rpc/connection.ts";
import { cutText } from "../rpc/safe-message.ts";

/**
 * What became of a publication on each route: `published`, `dropped` for too much of it, or `rejected`, also where the
 * plugin does not publish that way. `reason` says why a route that it does publish on took nothing.
 */
export type EmitOutcome = ResultOf<typeof PluginEmit>;

/**
 * Publishes an event of the plugin's own in the session at hand: on the bus, for other plugins and clients that listen
 * now, and in the session's record, as the plugin's `publish` says. A model never sees it.
 *
 * Each event that is heard and each call may publish once: an event within 4 s, a call until it has answered. Never
 * rejects; what was not published is told in the outcome.
 *
 * @param name 1 to 128 characters without controls.
 * @param payload Any JSON value of at most 256 KiB; 40 events per second and 4 MiB per minute pass in one session.
 */
export type Emit = (name: string, payload: unknown) => Promise<EmitOutcome>;

/** The kernel's right lives 5 s; what is sent later than this might come too late (E-148). */
export const DELIVERY_LIFE_MS = 4_000;
const ANSWER_TIMEOUT_MS = 30_000;
const MAX_REASON_BYTES = 1024;

export interface EmitRight {
  readonly sessionId: SessionId;
  readonly contextId: ContextId;
  /** From now; absent: as long as the kernel takes it. */
  readonly lifeMs?: number;
}

export function createEmit(connection: Connection, right: EmitRight): Emit {
  const { sessionId, contextId, lifeMs = Number.POSITIVE_INFINITY } = right;
  const expiresAtMs = performance.now() + lifeMs;
  return async (name, payload) => {
    if (performance.now() >= expiresAtMs) {
      return notPublished(name, `an event may be answered for ${lifeMs} ms, and they are over`);
    }
    const emission = { session_id: sessionId, context_id: contextId, name, payload };
    try {
      return await connection.request(PluginEmit, emission, { timeoutMs: ANSWER_TIMEOUT_MS });
    } catch (error) {
      return notPublished(name, error instanceof Error ? error.message : "it could not be sent");
    }
  };
}

function notPublished(name: string, reason: string): EmitOutcome {
  return { name, bus: "rejected", durable: "rejected", reason: cutText(reason, MAX_REASON_BYTES) };
}
