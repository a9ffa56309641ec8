import type { JsonObject, SessionId } from "@cookie-agent/sdk/protocol";
import type { SessionRights } from "./host-services.ts";

/** What a client, or a plugin on its way through the kernel, asks of the plugin that provides a service (E-122). */
export interface ServiceRequest {
  /** One of a manifest's `provides`. */
  readonly service: string;
  readonly method: string;
  /** May hold secrets. */
  readonly params: JsonObject;
  /** The session that the params name; the plugin may act on it until it has answered. */
  readonly session?: {
    readonly sessionId: SessionId;
    readonly rootSessionId: SessionId;
    readonly rights?: SessionRights;
  };
}
