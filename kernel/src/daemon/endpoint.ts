import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { CookieError } from "@cookie-agent/sdk/protocol";
import type { Transport } from "@cookie-agent/sdk/rpc";
import { acceptWebSocket } from "@cookie-agent/sdk/websocket";
import { judgeRequest } from "./judge-request.ts";

/** The only address that is ever bound (D-001). */
const HOST = "127.0.0.1";
/** Connections at a time, those included that have not said yet what they want. */
const MAX_CONNECTIONS = 256;
/** Within this a request has to have come; looked at as often, so it may have twice as long. */
const REQUEST_TIMEOUT_MS = 5000;
/** For the other side to say goodbye. */
const GOODBYE_MS = 1000;

export interface EndpointOptions {
  /** 0: one that is free. */
  readonly port: number;
  onClient(transport: Transport): void;
}

export interface Endpoint {
  /** With the port that was bound. */
  readonly url: string;
  /** Fresh for each endpoint, in memory only (D-002). */
  readonly token: string;
  /** Takes no further connection. */
  stopAccepting(): void;
  /** Waits for the connections to end, for a moment, then ends them. */
  close(): Promise<void>;
}

/** Listens for clients on the loopback address. Rejects with `port_in_use` or `engine` when it cannot. */
export async function openEndpoint({ port, onClient }: EndpointOptions): Promise<Endpoint> {
  const token = randomBytes(32).toString("base64url");
  const sockets = new Set<Socket>();
  const server = createServer({
    headersTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: REQUEST_TIMEOUT_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", (request, response) => answer(request, response, token));
  server.on("upgrade", (request, socket, head) => {
    const verdict = judgeRequest(request, token);
    if (verdict === "client") acceptWebSocket(request, socket, head, onClient);
    else refuse(socket, verdict === "health" ? 404 : verdict);
  });

  server.listen({ host: HOST, port, exclusive: true });
  try {
    await once(server, "listening");
  } catch (error) {
    throw bindFailure(port, error);
  }
  const closed = once(server, "close");
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `ws://${HOST}:${bound}/ws`,
    token,
    stopAccepting: () => server.close(),
    async close() {
      server.close();
      server.closeIdleConnections();
      const waiting = new AbortController();
      await Promise.race([closed, delay(GOODBYE_MS, undefined, waiting)]);
      waiting.abort();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A request that wants no upgrade. */
function answer(request: IncomingMessage, response: ServerResponse, token: string): void {
  const verdict = judgeRequest(request, token);
  const status = verdict === "health" ? 200 : verdict === "client" ? 426 : verdict;
  response.writeHead(status, {
    "content-type": "text/plain",
    ...(status !== 200 && { connection: "close" }),
    ...(status === 426 && { upgrade: "websocket" }),
  });
  response.end(status === 200 ? "ok" : "");
}

function refuse(socket: Duplex, status: number): void {
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    () => socket.destroy(),
  );
}

function bindFailure(port: number, error: unknown): CookieError {
  const { code = "unknown" } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") {
    return new CookieError(
      "port_in_use",
      `port ${port} of ${HOST} is in use, perhaps by another daemon; choose one with --port or server.port, 0 for any`,
      { cause: error },
    );
  }
  return new CookieError("engine", `port ${port} of ${HOST} cannot be bound (${code})`, {
    cause: error,
  });
}
