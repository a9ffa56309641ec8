import {
  CookieError,
  Handshake,
  type ParamsInput,
  RuntimeChanged,
} from "@cookie-agent/sdk/protocol";
import { type CloseReason, Connection, type Transport } from "@cookie-agent/sdk/rpc";
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

export type RuntimeChange = ParamsInput<typeof RuntimeChanged>;

export interface ClientConnectionOptions {
  /** Whether the client hears of the runtime and its changes; one in this process asks for it when it needs it. */
  readonly announcesRuntime?: boolean;
}

/**
 * One client, from its handshake to its end. Losing it ends its subscriptions and never a run that it started
 * (D-102).
 */
export class ClientConnection {
  readonly #connection: Connection;
  readonly #cleanups = new Set<() => void>();
  readonly #handshakeTimer: NodeJS.Timeout;
  readonly #announcesRuntime: boolean;
  #greeted = false;
  #inFlight = 0;
  #ended = false;
  /** The latest change that the client does not know of yet. */
  #change: RuntimeChange | null = null;
  #announcing = false;

  constructor(
    transport: Transport,
    services: ClientServices,
    { announcesRuntime = false }: ClientConnectionOptions = {},
  ) {
    this.#announcesRuntime = announcesRuntime;
    this.#connection = new Connection({
      transport,
      side: "daemon",
      servesWithoutId: true,
      onClose: () => this.#release(),
    });
    this.#connection.onRequest(
      Handshake,
      ({ protocol_version }) => {
        if (!this.#greeted) this.#greet(services);
        return { protocol_version };
      },
      { needsId: true },
    );
    const route: Route = (method, handler, options) => {
      this.#connection.onRequest(
        method,
        async (params, signal) => {
          this.#admit();
          this.#inFlight += 1;
          try {
            return await handler(params, signal);
          } finally {
            this.#inFlight -= 1;
          }
        },
        options,
      );
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
    this.#handshakeTimer = setTimeout(() => this.close("no_handshake"), HANDSHAKE_TIMEOUT_MS);
    this.#handshakeTimer.unref();
    this.#connection.listen();
  }

  close(reason: CloseReason = "done"): void {
    this.#connection.close(reason);
    this.#release();
  }

  /** Tells the client of a change; one that lags hears of the latest only, which says it all (D-051). */
  announce(change: RuntimeChange): void {
    if (!this.#announcesRuntime || !this.#greeted || this.#ended) return;
    this.#change = change;
    if (this.#announcing) return;
    this.#announcing = true;
    void this.#announceAll();
  }

  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  #greet(services: ClientServices): void {
    this.#greeted = true;
    clearTimeout(this.#handshakeTimer);
    if (!this.#announcesRuntime) return;
    // The answer goes first.
    setImmediate(() => {
      services.runtimeSnapshot().then(
        (snapshot) => this.announce({ previous_revision: null, snapshot, reasons: ["startup"] }),
        () => undefined,
      );
    });
  }

  async #announceAll(): Promise<void> {
    try {
      for (let next = this.#change; next !== null; next = this.#change) {
        this.#change = null;
        await this.#connection.notify(RuntimeChanged, next);
      }
    } catch {
      // One that no frame holds is refused to whoever asks for it, with the reason.
    } finally {
      this.#announcing = false;
    }
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
