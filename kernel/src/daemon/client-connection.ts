import { CookieError, Handshake } from "@cookie-agent/sdk/protocol";
import { Connection, type Transport } from "@cookie-agent/sdk/rpc";
import { registerApprovalMethods } from "./approval-methods.ts";
import { registerBranchMethods } from "./branch-methods.ts";
import type { ClientServices } from "./client-services.ts";
import { registerEventMethods } from "./event-methods.ts";
import type { Route } from "./route.ts";
import { registerRunMethods } from "./run-methods.ts";
import { registerRuntimeMethods } from "./runtime-methods.ts";
import { registerSessionMethods } from "./session-methods.ts";
import { registerTreeMethods } from "./tree-methods.ts";
import { registerUsageMethods } from "./usage-methods.ts";

/** Requests of one client that may be served at the same time (D-082). */
const MAX_IN_FLIGHT = 128;
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * One client, from its handshake to its end. Losing it ends its subscriptions and never a run that it started
 * (D-102).
 */
export class ClientConnection {
  readonly #connection: Connection;
  readonly #cleanups = new Set<() => void>();
  readonly #handshakeTimer: NodeJS.Timeout;
  #greeted = false;
  #inFlight = 0;
  #ended = false;

  constructor(transport: Transport, services: ClientServices) {
    this.#connection = new Connection({
      transport,
      side: "daemon",
      onClose: () => this.#release(),
    });
    this.#connection.onRequest(Handshake, ({ protocol_version }) => {
      this.#greeted = true;
      clearTimeout(this.#handshakeTimer);
      return { protocol_version };
    });
    const route: Route = (method, handler) => {
      this.#connection.onRequest(method, async (params, signal) => {
        this.#admit();
        this.#inFlight += 1;
        try {
          return await handler(params, signal);
        } finally {
          this.#inFlight -= 1;
        }
      });
    };
    registerSessionMethods(route, services);
    registerBranchMethods(route, services);
    registerTreeMethods(route, services);
    registerRunMethods(route, services);
    registerApprovalMethods(route, services);
    registerRuntimeMethods(route, services);
    registerUsageMethods(route, services);
    registerEventMethods(route, services, {
      notify: (notification, params) => this.#connection.notify(notification, params),
      onEnd: (cleanup) => {
        if (this.#ended) cleanup();
        else this.#cleanups.add(cleanup);
        return () => this.#cleanups.delete(cleanup);
      },
    });
    // Whoever says nothing keeps no connection (D-025).
    this.#handshakeTimer = setTimeout(() => this.close(), HANDSHAKE_TIMEOUT_MS);
    this.#handshakeTimer.unref();
    this.#connection.listen();
  }

  close(): void {
    this.#connection.close();
    this.#release();
  }

  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  #admit(): void {
    if (!this.#greeted) throw new CookieError("handshake_required", "handshake required");
    if (this.#inFlight < MAX_IN_FLIGHT) return;
    throw new CookieError("busy", `at most ${MAX_IN_FLIGHT} requests are served at a time`);
  }

  #release(): void {
    this.#ended = true;
    clearTimeout(this.#handshakeTimer);
    for (const cleanup of this.#cleanups) cleanup();
    this.#cleanups.clear();
  }
}
