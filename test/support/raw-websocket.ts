import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";

const OPCODE = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** The bytes of a WebSocket as a client of another make sends them; it checks nothing and may stop reading. */
export class RawWebSocket {
  readonly socket: Socket;
  /** Text messages that came and were not asked for yet. */
  readonly texts: string[] = [];
  readonly pongs: string[] = [];
  /** Of the other side's close frame. */
  closeCode: number | null = null;
  readonly closed: Promise<unknown>;
  #pending: Buffer;
  readonly #waiters = new Set<() => void>();

  constructor(socket: Socket, head: Buffer) {
    this.socket = socket;
    this.#pending = head;
    this.closed = once(socket, "close");
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, chunk]);
      this.#read();
    });
    socket.once("close", () => this.#wake());
  }

  sendText(text: string): void {
    this.#sendFrame(OPCODE.text, Buffer.from(text));
  }

  sendJson(value: unknown): void {
    this.sendText(JSON.stringify(value));
  }

  sendBinary(bytes: Buffer): void {
    this.#sendFrame(OPCODE.binary, bytes);
  }

  ping(text: string): void {
    this.#sendFrame(OPCODE.ping, Buffer.from(text));
  }

  /** The next message, read as JSON. */
  async next(): Promise<Record<string, unknown>> {
    for (;;) {
      const text = this.texts.shift();
      if (text !== undefined) return JSON.parse(text) as Record<string, unknown>;
      if (this.socket.destroyed) throw new Error(`closed with ${this.closeCode}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  /** The answer to a request, whatever comes before it. */
  async call(id: number, method: string, params: unknown = {}): Promise<Record<string, unknown>> {
    this.sendJson({ jsonrpc: "2.0", id, method, params });
    for (;;) {
      const message = await this.next();
      if (message["id"] === id) return message;
    }
  }

  async greet(): Promise<void> {
    await this.call(0, "handshake", { protocol_version: 20 });
  }

  #sendFrame(opcode: number, payload: Buffer): void {
    const mask = randomBytes(4);
    const masked = payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0));
    this.socket.write(Buffer.concat([header(opcode, payload.length), mask, masked]));
  }

  #read(): void {
    for (;;) {
      const frame = readFrame(this.#pending);
      if (frame === undefined) return;
      this.#pending = this.#pending.subarray(frame.byteLength);
      if (frame.opcode === OPCODE.text) this.texts.push(frame.payload.toString("utf8"));
      if (frame.opcode === OPCODE.pong) this.pongs.push(frame.payload.toString("utf8"));
      if (frame.opcode === OPCODE.close) {
        this.closeCode = frame.payload.readUInt16BE(0);
        this.socket.end();
      }
      this.#wake();
    }
  }

  #wake(): void {
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }
}

export interface UpgradeOptions {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly upgrade?: boolean;
}

/** Sends one request to a daemon's endpoint, an upgrade unless told otherwise: a socket, or the refusal. */
export async function askEndpoint(
  url: string,
  { path = "/ws", method = "GET", headers = {}, upgrade = true }: UpgradeOptions = {},
): Promise<{ socket: RawWebSocket } | { status: number; body: string; headers: object }> {
  const { hostname, port } = new URL(url);
  const asked = request({
    host: hostname,
    port,
    path,
    method,
    headers: {
      host: `127.0.0.1:${port}`,
      ...(upgrade && {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": randomBytes(16).toString("base64"),
      }),
      ...headers,
    } as Record<string, string | string[]>,
  });
  asked.end();
  return new Promise((resolve, reject) => {
    asked.once("error", reject);
    asked.once("upgrade", (_response, socket: Socket, head: Buffer) =>
      resolve({ socket: new RawWebSocket(socket, head) }),
    );
    asked.once("response", (response: IncomingMessage) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, body, headers: response.headers }),
      );
    });
  });
}

/** A connection whose upgrade was accepted. */
export async function openRaw(
  { url, token }: { readonly url: string; readonly token: string },
  headers: Readonly<Record<string, string>> = {},
): Promise<RawWebSocket> {
  const answer = await askEndpoint(url, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  if ("socket" in answer) return answer.socket;
  throw new Error(`refused with ${answer.status}`);
}

function header(opcode: number, length: number): Buffer {
  const first = 0x80 | opcode;
  if (length < 126) return Buffer.from([first, 0x80 | length]);
  const bytes = Buffer.alloc(length < 65_536 ? 4 : 10);
  bytes[0] = first;
  bytes[1] = 0x80 | (length < 65_536 ? 126 : 127);
  if (length < 65_536) bytes.writeUInt16BE(length, 2);
  else bytes.writeBigUInt64BE(BigInt(length), 2);
  return bytes;
}

/** The first complete frame; a server's have no mask. */
function readFrame(
  bytes: Buffer,
): { opcode: number; payload: Buffer; byteLength: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const start = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < start) return undefined;
  const length =
    short === 126
      ? bytes.readUInt16BE(2)
      : short === 127
        ? Number(bytes.readBigUInt64BE(2))
        : short;
  if (bytes.length < start + length) return undefined;
  return {
    opcode: (bytes[0] ?? 0) & 0x0f,
    payload: bytes.subarray(start, start + length),
    byteLength: start + length,
  };
}
