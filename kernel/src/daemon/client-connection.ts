import { CookieError, Handshake } from "@cookie-agent/sdk/protocol";
import { Connection, type Transport } from "@cookie-agent/sdk/rpc";
import { registerApprovalMethods } from "./approval-methods.ts";
import type { ClientServices } from "./client-services.ts";
import { registerEventMethods } from "./event-methods.ts";
import type { Route } from "./route.ts";
import { registerRunMethods } from "./run-methods.ts";
import { registerRuntimeMethods } from "./runtime-methods.ts";
import { registerSessionMethods } from "./session-methods.ts";

/**
 * One client, from its handshake to its end. Losing it ends its subscriptions and never a run that it started
 * (D-102).
 */
export class ClientConnection {
  readonly #connection: Connection;
  readonly #cleanups = new Set<() => void>();
  #greeted = false;

  constructor(transport: Transport, services: ClientServices) {
    this.#connection = new Connection({
      transport,
      side: "daemon",
      onClose: () => this.#release(),
    });
    this.#connection.onRequest(Handshake, ({ protocol_version }) => {
      this.#greeted = true;
      return { protocol_version };
    });
    const route: Route = (method, handler) => {
      this.#connection.onRequest(method, (params, signal) => {
        if (!this.#greeted) throw new CookieError("handshake_required", "handshake required");
        return handler(params, signal);
      });
    };
    registerSessionMethods(route, services);
    registerRunMethods(route, services);
    registerApprovalMethods(route, services);
    registerRuntimeMethods(route, services);
    registerEventMethods(route, services, {
      notify: (notification, params) => this.#connection.notify(notification, params),
      onEnd: (cleanup) => {
        this.#cleanups.add(cleanup);
        return () => this.#cleanups.delete(cleanup);
      },
    });
    this.#connection.listen();
  }

  close(): void {
    this.#connection.close();
    this.#release();
  }

  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  #release(): void {
    for (const cleanup of this.#cleanups) cleanup();
    this.#cleanups.clear();
  }
}
