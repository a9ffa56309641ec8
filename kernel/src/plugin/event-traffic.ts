import type { EmitResult, ParamsOf, PluginEmit, SessionId } from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { withDeadline } from "../support/deadline.ts";
import type { ContextGrants } from "./context-grants.ts";
import { EmitQuota } from "./emit-quota.ts";
import { EmitTokens } from "./emit-tokens.ts";
import type { EventClaims } from "./event-claims.ts";
import { EventFeed } from "./event-feed.ts";
import type { EventServices } from "./event-services.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import { publish } from "./publication.ts";

export interface EventTrafficOptions {
  readonly plugin: string;
  readonly claims: EventClaims;
  readonly rpc: Connection;
  readonly grants: ContextGrants;
  readonly services: EventServices;
  readonly limits: PluginLimits;
  /** Told of each event that the plugin did not get. */
  onDropped(): void;
}

/** The events that one connection hears and publishes, from the handshake to its end. */
export interface EventTraffic {
  readonly publish: (emission: ParamsOf<typeof PluginEmit>) => Promise<EmitResult>;
  /** Resolves when the plugin has been sent all that waits for it, or the time is over. */
  drain(withinMs: number): Promise<void>;
  /** Hears and publishes nothing any more. */
  end(): void;
}

/** A plugin that subscribes to nothing costs no listener, one that publishes nothing no rights. */
export function openEventTraffic(options: EventTrafficOptions): EventTraffic {
  const { plugin, claims, rpc, grants, services, limits } = options;
  const tokens = new EmitTokens(limits.emitTokens);
  if (claims.publishBus || claims.publishSessionEvents) grants.emitTokens = tokens;
  const quota = new EmitQuota(limits.emitQuota);
  const feed =
    claims.events === false && !claims.bus
      ? undefined
      : new EventFeed({
          plugin,
          claims,
          tokens,
          bounds: limits.feed,
          notify: (notification, params) => rpc.notify(notification, params),
          note: (sessionId: SessionId, kind, message) =>
            services.note(sessionId, plugin, kind, message),
          onDropped: options.onDropped,
        });
  const leave = feed === undefined ? undefined : services.bus.join(feed);
  return {
    publish: (emission) => publish(emission, { plugin, claims, grants, tokens, quota, services }),
    async drain(withinMs) {
      if (feed !== undefined)
        await withDeadline(feed.drained(), withinMs, "").catch(() => undefined);
    },
    end() {
      leave?.();
      feed?.stop();
    },
  };
}
