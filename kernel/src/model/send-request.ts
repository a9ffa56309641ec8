import type { ClientRequest, IncomingMessage } from "node:http";
import { type Readable, Stream } from "node:stream";
import { hasCode } from "../support/has-code.ts";
import type { BodyPieces } from "./request-prefix.ts";

export interface HttpRequest {
  readonly method: string;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: BodyPieces;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly statusText: string;
  /** Names in lower case; what came several times is joined by commas. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Readable;
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * One request over the runtime's HTTP client, which costs a fifth of what loading its `fetch` does. Redirects are
 * answers like any other. Rejects with the error of the network; aborting ends the body too.
 */
export async function sendRequest(url: string, request: HttpRequest): Promise<HttpAnswer> {
  const message = await exchangeUnlessStale(url, request);
  return {
    status: message.statusCode ?? 0,
    statusText: message.statusMessage ?? "",
    headers: headersOf(message),
    body: await decoded(message),
  };
}

class StaleConnection extends Error {}

/** A server may close the connections that were kept at the very moment they are used again; each try drops one. */
async function exchangeUnlessStale(url: string, request: HttpRequest): Promise<IncomingMessage> {
  for (;;) {
    try {
      return await exchange(url, request);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
    }
  }
}

function exchange(
  url: string,
  { method, headers, body, signal }: HttpRequest,
): Promise<IncomingMessage> {
  const target = new URL(url);
  const secure = target.protocol === "https:";
  // An import would touch every export, and on newer runtimes one of them loads `fetch`.
  const { request } = process.getBuiltinModule(secure ? "node:https" : "node:http");
  return new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(target, { method, headers: Object.fromEntries(headers) });
    let answer: IncomingMessage | undefined;
    // Not the runtime's own `signal`: it breaks a connection that waits for its reader with an error nobody can hear.
    const onAbort = () => (answer ?? sent).destroy();
    const done = () => signal.removeEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    sent.once("response", (message) => {
      answer = message;
      message.once("close", done);
      resolve(message);
    });
    // Stays, for what breaks once the answer has begun is told again by its body.
    sent.on("error", (error) => {
      const isStale = sent.reusedSocket && hasCode(error, "ECONNRESET", "EPIPE");
      reject(isStale && !signal.aborted ? new StaleConnection() : error);
    });
    sent.once("close", () => {
      if (answer !== undefined) return;
      done();
      // An answer that switches protocols closes the request without an error.
      reject(failure("EPROTO", "the connection closed without an answer"));
    });
    sent.once("socket", (socket) => {
      if (!socket.connecting) return;
      const timer = setTimeout(() => {
        sent.destroy(failure("ETIMEDOUT", `no connection within ${CONNECT_TIMEOUT_MS} ms`));
      }, CONNECT_TIMEOUT_MS);
      const connected = () => clearTimeout(timer);
      socket.once(secure ? "secureConnect" : "connect", connected);
      socket.once("close", connected);
    });
    const [text, ...others] = body;
    if (typeof text === "string" && others.length === 0) sendText(sent, text);
    else sendPieces(sent, body);
  });
}

function sendPieces(sent: ClientRequest, body: BodyPieces): void {
  const pieces = body.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
  sent.setHeader(
    "content-length",
    pieces.reduce((sum, piece) => sum + piece.byteLength, 0),
  );
  for (const piece of pieces) sent.write(piece);
  sent.end();
}

function sendText(sent: ClientRequest, text: string): void {
  const encoded = encode(text);
  sent.once("finish", () => {
    memory = encoded.buffer.byteLength <= KEPT_BYTES ? Buffer.from(encoded.buffer) : NO_BYTES;
  });
  sent.end(encoded);
}

const KEPT_BYTES = 8 * 1024 * 1024;
const NO_BYTES = Buffer.alloc(0);
/** Of the last request that was sent: fresh memory for the whole conversation costs far more than encoding it. */
let memory: Buffer = NO_BYTES;

function encode(text: string): Buffer {
  const byteLength = Buffer.byteLength(text);
  const bytes = memory.length < byteLength ? Buffer.allocUnsafeSlow(byteLength * 2) : memory;
  // Nobody else may use it until the request has been handed over.
  memory = NO_BYTES;
  bytes.write(text);
  return bytes.subarray(0, byteLength);
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

function headersOf(message: IncomingMessage): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return headers;
}

/** No compression is asked for, but some proxies compress all the same. */
async function decoded(message: IncomingMessage): Promise<Readable> {
  const encoding = message.headers["content-encoding"]?.trim().toLowerCase();
  if (encoding === undefined || !["gzip", "x-gzip", "deflate", "br"].includes(encoding)) {
    return message;
  }
  const { createBrotliDecompress, createUnzip } = await import("node:zlib");
  const decoder = encoding === "br" ? createBrotliDecompress() : createUnzip();
  // Its callback hears what the reader of the decoder hears.
  return Stream.pipeline(message, decoder, () => undefined);
}
