import { setTimeout as delay } from "node:timers/promises";
import {
  CLIENT_PROTOCOL_VERSION,
  CookieError,
  type EventEnvelope,
  EventsPlugin,
  EventsSubscribe,
  EventsSubscription,
  Handshake,
  isCookieError,
  type Method,
  type ParamsInput,
  type ResultOf,
  type RunId,
  RunToolStdin,
  type SessionId,
  type StoredEvent,
  type ToolCallId,
  ToolOutputDelta,
  ToolOutputGap,
  ToolOutputSnapshot,
} from "../protocol/index.ts";
import { Connection, SecretText, type Transport } from "../rpc/index.ts";
import { DeliveryQueue } from "./delivery-queue.ts";

/**
 * What a subscriber meets, in order. `recovered` says that a gap was closed by reading the log again. A payload
 * type that this version does not know is passed on as it is; skip it (D-066).
 */
export type SessionNews =
  | { readonly type: "event"; readonly event: StoredEvent }
  | { readonly type: "recovered"; readonly afterSeq: number }
  | {
      readonly type: "output";
      readonly callId: string;
      readonly stream: string;
      readonly byteOffset: number;
      /** Base64; a chunk may split a character (D-071). */
      readonly data: string;
    }
  | {
      readonly type: "output_gap";
      readonly callId: string;
      readonly stream: string;
      readonly nextOffset: number;
    }
  /** Published by a plugin, not recorded; may be missed (E-141). */
  | {
      readonly type: "plugin_event";
      readonly plugin: string;
      readonly name: string;
      readonly payload: unknown;
    };

export interface SubscribeOptions {
  /** Events after this seq; 0 = all. */
  readonly cursor?: number;
  /** This client can answer approvals and take keyboard input (D-152). */
  readonly interactive?: boolean;
  /** False: events only, without the output of running calls. */
  readonly outputs?: boolean;
}

/** Events of one subscription page; more are read with the last seq as cursor. */
const PAGE_EVENTS = 1000;

export type ConnectionState = "lost" | "restored" | "closed";

type OpenTransport = (signal: AbortSignal) => Promise<Transport>;

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Before the first and between later attempts to connect again; doubled from one to the other (D-128). */
const RECONNECT_PAUSE_MS = { first: 50, longest: 5000 } as const;

/** A client of one kernel, over whatever transport; speaks the client protocol and nothing else. */
export class CookieClient {
  readonly #queues = new Map<string, DeliveryQueue<SessionNews>>();
  readonly #ended = new AbortController();
  readonly #reopen: OpenTransport | undefined;
  readonly #onState: (state: ConnectionState) => void;
  #connection: Connection | undefined;
  /** While the connection is lost: true once it is there again, false when it never will be. */
  #restored: Promise<boolean> | undefined;

  /** Opens the connection and shakes hands; rejects when the versions differ (D-020). */
  static async connect(transport: Transport): Promise<CookieClient> {
    const client = new CookieClient();
    await client.#attach(transport);
    return client;
  }

  /**
   * The same, over a transport that can be opened again: a lost connection fails the requests under way with `closed`,
   * comes back, and subscriptions go on from where they were (D-128).
   */
  static async connectAgain(
    open: OpenTransport,
    onConnection?: (state: ConnectionState) => void,
  ): Promise<CookieClient> {
    const client = new CookieClient(open, onConnection);
    await client.#attach(await open(client.#ended.signal));
    return client;
  }

  private constructor(reopen?: OpenTransport, onState?: (state: ConnectionState) => void) {
    this.#reopen = reopen;
    this.#onState = onState ?? (() => undefined);
  }

  async request<M extends Method>(
    method: M,
    params: ParamsInput<M>,
    options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
  ): Promise<ResultOf<M>> {
    if (this.#connection !== undefined) return this.#connection.request(method, params, options);
    throw lost(method);
  }

  /**
   * Gives a running call what somebody typed, null for the end alone. The bytes are wiped at once, what is made of them
   * when it is sent or cannot be (D-086); a peer in this process gets a string.
   */
  async feedStdin(
    target: { readonly runId: RunId; readonly callId: ToolCallId; readonly eof?: boolean },
    data: Buffer | null,
  ): Promise<void> {
    const secret = data === null ? undefined : SecretText.base64("data", data);
    const { runId: run_id, callId: call_id, eof = data === null } = target;
    try {
      if (this.#connection === undefined) throw lost(RunToolStdin);
      await this.#connection.request(
        RunToolStdin,
        { run_id, call_id, eof },
        secret === undefined ? {} : { secret },
      );
    } finally {
      secret?.wipe();
    }
  }

  /**
   * Follows a session: what is stored after the cursor, then what happens. A gap is closed by subscribing again
   * from the last event seen (D-062), and so is a lost connection, so no event is lost or doubled. Ends when the
   * connection is gone for good, or when the caller stops iterating; throws when the session cannot be read any more.
   */
  async *subscribe(
    sessionId: SessionId,
    options: SubscribeOptions = {},
  ): AsyncGenerator<SessionNews, void, undefined> {
    const queue = new DeliveryQueue<SessionNews>({ type: "recovered", afterSeq: 0 });
    this.#queues.get(sessionId)?.end();
    this.#queues.set(sessionId, queue);
    let cursor = options.cursor ?? 0;
    try {
      let live = true;
      for (let attached = false; ; attached = true) {
        if (attached) yield { type: "recovered", afterSeq: cursor };
        if ((await this.#restored) === false) return;
        try {
          for await (const page of this.#pages(sessionId, () => cursor, options)) {
            live = page.live !== false;
            for (const event of page.events) {
              cursor = event.seq;
              yield { type: "event", event: asStored(event) };
            }
          }
        } catch (error) {
          if (this.#restored !== undefined && isCookieError(error, "closed")) continue;
          throw error;
        }
        if (!live) return;
        let gap = false;
        for await (const news of queue) {
          if (news.type === "recovered") {
            gap = true;
            break;
          }
          if (news.type === "event") {
            if (news.event.seq <= cursor) continue;
            cursor = news.event.seq;
          }
          yield news;
        }
        if (!gap) return;
      }
    } finally {
      queue.end();
      if (this.#queues.get(sessionId) === queue) this.#queues.delete(sessionId);
    }
  }

  /** What is stored of a session now, from its beginning; nothing is waited for. */
  async readEvents(sessionId: SessionId): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    const cursor = () => events.at(-1)?.seq ?? 0;
    for await (const page of this.#pages(sessionId, cursor, { outputs: false })) {
      events.push(...page.events.map(asStored));
    }
    return events;
  }

  close(): void {
    this.#ended.abort();
    this.#connection?.close();
    this.#endAll();
  }

  async #attach(transport: Transport): Promise<void> {
    const connection = new Connection({
      transport,
      side: "client",
      onClose: () => this.#lose(connection),
    });
    this.#receive(connection);
    connection.listen();
    try {
      await connection.request(
        Handshake,
        { protocol_version: CLIENT_PROTOCOL_VERSION },
        { timeoutMs: HANDSHAKE_TIMEOUT_MS },
      );
    } catch (error) {
      connection.close();
      throw error;
    }
    this.#connection = connection;
    if (this.#ended.signal.aborted) connection.close();
  }

  #lose(connection: Connection): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    if (this.#ended.signal.aborted || this.#reopen === undefined) {
      this.#endAll();
      return;
    }
    this.#restored = this.#reconnect(this.#reopen);
    // Subscribers ask again from what they have seen, once that is possible.
    for (const queue of this.#queues.values()) queue.push({ type: "recovered", afterSeq: 0 });
    this.#onState("lost");
  }

  async #reconnect(open: OpenTransport): Promise<boolean> {
    const { signal } = this.#ended;
    let pauseMs: number = RECONNECT_PAUSE_MS.first;
    while (!signal.aborted) {
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      try {
        await this.#attach(await open(signal));
        this.#restored = undefined;
        this.#onState("restored");
        return true;
      } catch (error) {
        // Another daemon, or another version: no further attempt would fare better.
        if (isCookieError(error, "refused") || isCookieError(error, "invalid_params")) break;
        pauseMs = Math.min(pauseMs * 2, RECONNECT_PAUSE_MS.longest);
      }
    }
    this.#ended.abort();
    this.#endAll();
    this.#onState("closed");
    return false;
  }

  #receive(connection: Connection): void {
    connection.onNotification(EventsSubscription, (params) => {
      if (params.type === "event") {
        this.#queues
          .get(params.event.session_id)
          ?.push({ type: "event", event: asStored(params.event) });
      } else {
        this.#queues
          .get(params.session_id)
          ?.push({ type: "recovered", afterSeq: params.last_delivered_seq });
      }
    });
    connection.onNotification(ToolOutputSnapshot, (params) => {
      for (const chunk of params.chunks) {
        this.#queues.get(params.session_id)?.push({
          type: "output",
          callId: params.call_id,
          stream: params.stream,
          byteOffset: chunk.byte_offset,
          data: chunk.data,
        });
      }
    });
    connection.onNotification(ToolOutputDelta, (params) => {
      this.#queues.get(params.session_id)?.push({
        type: "output",
        callId: params.call_id,
        stream: params.stream,
        byteOffset: params.byte_offset,
        data: params.data,
      });
    });
    connection.onNotification(ToolOutputGap, (params) => {
      this.#queues.get(params.session_id)?.push({
        type: "output_gap",
        callId: params.call_id,
        stream: params.stream,
        nextOffset: params.next_offset,
      });
    });
    connection.onNotification(EventsPlugin, ({ session_id, plugin, name, payload }) => {
      this.#queues.get(session_id)?.push({ type: "plugin_event", plugin, name, payload });
    });
  }

  async *#pages(
    sessionId: SessionId,
    cursor: () => number,
    options: SubscribeOptions,
  ): AsyncGenerator<ResultOf<typeof EventsSubscribe>, void, undefined> {
    for (;;) {
      const page = await this.request(EventsSubscribe, {
        session_id: sessionId,
        cursor: cursor(),
        limit: PAGE_EVENTS,
        ...(options.interactive === undefined ? {} : { interactive: options.interactive }),
        ...(options.outputs === undefined ? {} : { outputs: options.outputs }),
      });
      yield page;
      if (page.more !== true) return;
      if (page.events.length === 0) {
        throw new CookieError("protocol_violation", "a page of events promised more but was empty");
      }
    }
  }

  #endAll(): void {
    for (const queue of this.#queues.values()) queue.end();
    this.#queues.clear();
  }
}

function lost({ name }: Method): CookieError {
  return new CookieError("closed", `there is no connection for ${name}`);
}

/** The kernel checked the payload when it was written; the envelope is checked on arrival. */
function asStored(envelope: EventEnvelope): StoredEvent {
  return envelope as unknown as StoredEvent;
}
