import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type ClientOptions, WebSocket, WebSocketServer } from "ws";
import { CookieError } from "../protocol/errors.ts";
import { MAX_CLIENT_FRAME_BYTES } from "../protocol/version.ts";
import { type Envelope, readClientEnvelope } from "./client-envelope.ts";
import "./json-rpc-runtime.ts";
import { SocketReader, type SocketReaderOptions } from "./socket-reader.ts";
import { SocketWriter } from "./socket-writer.ts";
import type { Message, Transport } from "./transport.ts";

const CONNECT_TIMEOUT_MS = 10_000;

const acceptor = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MAX_CLIENT_FRAME_BYTES,
  autoPong: false,
  // Left alone the library picks the first one offered.
  handleProtocols: () => false,
});

/**
 * Answers an upgrade request whose sender may connect. A request that is no proper one is answered with an error and
 * its socket is closed.
 */
export function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  onTransport: (transport: Transport) => void,
): void {
  acceptor.handleUpgrade(request, socket, head, (accepted) => {
    const transport = createTransport(accepted, {
      read: readClientEnvelope,
      onBadEnvelope: ({ code, message, detail }) => {
        const data = detail === undefined ? {} : { data: { detail } };
        const answer = { jsonrpc: "2.0", id: null, error: { code, message, ...data } };
        void transport.writer.write(answer as Message);
      },
    });
    // A peer that takes nothing needs no sign of life, and could have them pile up.
    accepted.on("ping", (data) => {
      if (transport.room?.() === undefined) accepted.pong(data);
    });
    onTransport(transport);
  });
}

export interface WebSocketTarget {
  readonly url: string;
  readonly token: string;
  readonly signal?: AbortSignal;
}

/**
 * Connects to a daemon. Rejects with `refused` when it refuses the upgrade (`status` in the data), with `unreachable`
 * when nobody answers, with `cancelled` by the signal.
 */
export function connectWebSocket({ url, token, signal }: WebSocketTarget): Promise<Transport> {
  const options: ClientOptions = {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
    maxPayload: MAX_CLIENT_FRAME_BYTES,
    handshakeTimeout: CONNECT_TIMEOUT_MS,
    followRedirects: false,
  };
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, options);
    const abort = () => {
      reject(new CookieError("cancelled", "connecting was cancelled"));
      socket.terminate();
    };
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("unexpected-response", (request, { statusCode = 0 }) => {
      reject(refusal(statusCode));
      request.destroy();
    });
    // Stays: an error after this one must not end the process.
    socket.on("error", (error) => reject(unreachable(url, error)));
    socket.once("close", () => signal?.removeEventListener("abort", abort));
    socket.once("open", () => {
      signal?.removeEventListener("abort", abort);
      const transport = createTransport(socket, {
        read: readDaemonEnvelope,
        // Whose answer it was cannot be known, so nothing that waits may go on waiting (D-123).
        onBadEnvelope: () => socket.terminate(),
      });
      resolve(transport);
    });
  });
}

function createTransport(
  socket: WebSocket,
  options: Omit<SocketReaderOptions, "socket">,
): Transport {
  const reader = new SocketReader({ socket, ...options });
  const writer = new SocketWriter({
    socket,
    onAnswersWaiting: (tooMany) => reader.hold("answers", tooMany),
    onTooSlow: () => writer.close("too_slow"),
  });
  return {
    reader,
    writer,
    flow: reader.flow,
    room: () => writer.room,
    close: (reason = "done") => writer.close(reason),
  };
}

function readDaemonEnvelope(text: string): Envelope {
  const bad = { bad: { code: -32700, message: "parse error" } };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return { frame: value as Message };
    }
  } catch {
    // no JSON
  }
  return bad;
}

function refusal(status: number): CookieError {
  const data = { status };
  if (status === 401) {
    return new CookieError(
      "refused",
      "the daemon refused the token; it is the first line that this daemon printed, and every start has another one",
      { data },
    );
  }
  if (status === 403) {
    return new CookieError("refused", "the daemon refused this client as not local", { data });
  }
  return new CookieError("unreachable", `no daemon answers there (HTTP ${status})`, { data });
}

function unreachable(url: string, error: Error): CookieError {
  const code = (error as NodeJS.ErrnoException).code ?? "no answer";
  return new CookieError(
    "unreachable",
    `no daemon answers at ${url} (${code}); \`cookie daemon\` starts one and prints its address`,
    { cause: error },
  );
}
