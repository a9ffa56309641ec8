import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type CancellationToken,
  CancellationTokenSource,
  createMessageConnection,
  type Message,
  type MessageConnection,
  Message as Messages,
  type NotificationMessage,
  ResponseError,
} from "vscode-jsonrpc";
import { checkValue } from "../protocol/check-value.ts";
import { CookieError, isCookieError } from "../protocol/errors.ts";
import type {
  Method,
  Notification,
  ParamsInput,
  ParamsOf,
  ResultInput,
  ResultOf,
} from "../protocol/method.ts";
import { awaitAnswer } from "./await-answer.ts";
import { InboundGate } from "./inbound-gate.ts";
import "./json-rpc-runtime.ts";
import { OutboundWriter } from "./outbound-writer.ts";
import { bytesBehind, withBytes } from "./raw-frame.ts";
import type { SecretText } from "./secret-text.ts";
import type { CloseReason, Transport } from "./transport.ts";
import { Turns } from "./turns.ts";
import { fromWireError, toResponseError, toWireError } from "./wire-error.ts";

export interface ConnectionOptions {
  readonly transport: Transport;
  /** Who we are; decides what a pending request of a lost connection fails with. */
  readonly side: "kernel" | "plugin" | "daemon" | "client";
  /** A peer that does not read its answers is not served: its requests wait, and in the end its pipe. */
  readonly servesReadersOnly?: boolean;
  /** A request without an id is carried out too, and not answered, unless its handler wants an id (D-014). */
  readonly servesWithoutId?: boolean;
  /** When the input ends, what came before is still answered; the owner closes. */
  readonly answersAfterEnd?: boolean;
  /** Called once, when either end closed. */
  onClose?(): void;
  /** A peer's message that breaks the contract, or (`internal`, with its cause) a handler of ours that failed. */
  onProtocolError?(error: CookieError): void;
}

export interface RequestOptions {
  /** Aborting sends `$/cancelRequest` and fails the request with `cancelled`. */
  readonly signal?: AbortSignal;
  /** Passing sends `$/cancelRequest` and fails the request with `timeout`. */
  readonly timeoutMs?: number;
  /** After an abort or timeout, wait this long for the peer's own answer; a result still counts. */
  readonly cancelGraceMs?: number;
  /** Gets what sends `$/cancelRequest`, for whoever then still waits for the peer's own answer. */
  onSent?(cancel: () => void): void;
  /** Takes the place of its member of the params when they are written. Whoever made it wipes it. */
  readonly secret?: SecretText;
}

interface ServeOptions {
  /** What it needs in memory is large: few are handled at once, and each counts as waiting until then (E-012). */
  readonly bulky?: boolean;
  /** Its answer is the point of it: without an id it is not carried out (D-014). */
  readonly needsId?: boolean;
}

interface RequestEntry {
  readonly method: Method;
  readonly bulky: boolean;
  readonly needsId: boolean;
  handle(params: unknown, signal: AbortSignal): unknown;
}

interface NotificationEntry {
  readonly notification: Notification;
  handle(params: unknown, raw: readonly Uint8Array[] | undefined): void | Promise<void>;
}

/** Error text of these methods is for a model and may have several lines (E-172). */
const METHODS_WITH_LONG_ERRORS: ReadonlySet<string> = new Set(["plugin/tools/call"]);

/** Bulky requests that are handled at once. */
const BULKY_AT_ONCE = 4;

/** How long frames may still come in when nothing can be sent any more. */
const LAST_FRAMES_MS = 1000;

/**
 * Typed JSON-RPC over a transport, which it owns. Both directions are checked against the declared schemas; frames
 * are dispatched in arrival order (E-008), while handlers of earlier ones may still run. A notification handler that
 * returns a promise keeps its frame counted as waiting until it settles (E-012).
 */
export class Connection {
  readonly closed: Promise<void>;
  /** Nothing more comes in; where it is not answered after the end, it is closed then. */
  readonly ended: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #gate: InboundGate;
  readonly #writer: OutboundWriter;
  readonly #rpc: MessageConnection;
  readonly #requests = new Map<string, RequestEntry>();
  readonly #notifications = new Map<string, NotificationEntry>();
  readonly #serving = new Set<AbortController>();
  readonly #bulky = new Turns(BULKY_AT_ONCE);
  /** The request that is being handed over. */
  #arriving: Message | undefined;
  /** Requests that count as waiting though they were handed over. */
  readonly #delayed = new Set<Message>();
  #resolveClosed: () => void = () => {};
  #onAnswered: () => void = () => {};
  #isClosed = false;
  #closeTimer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    const { transport } = options;
    this.#writer = new OutboundWriter(transport.writer);
    this.#gate = new InboundGate(transport, (problem) => this.#reportProtocol(problem));
    this.#rpc = createMessageConnection(this.#gate, this.#writer, undefined, {
      messageStrategy: {
        handleMessage: (message, next) => {
          // The library's own path costs a promise per notification and hides when a handler is done.
          if (isPlainNotification(message)) return this.#receiveNotification(message);
          this.#arriving = message;
          const done = next(message);
          this.#arriving = undefined;
          this.#gate.dispatched(message);
          if (!this.#delayed.has(message)) transport.flow?.settled(message);
          return done;
        },
      },
    });
    this.#rpc.onRequest((name, params, token) => this.#serveRequest(name, params, token));
    this.#rpc.onError(() => {});
    this.ended = new Promise((resolve) => {
      this.#rpc.onClose(() => {
        if (options.answersAfterEnd !== true) this.close();
        resolve();
      });
    });
    transport.writer.onClose(() => this.#closeSoon());
  }

  /**
   * Registers the handler of a request; to be called before `listen`. A thrown `CookieError` travels with its code,
   * anything else as `internal` without text. The signal aborts on `$/cancelRequest` and when the connection closes.
   */
  onRequest<M extends Method>(
    method: M,
    handler: (params: ParamsOf<M>, signal: AbortSignal) => Promise<ResultInput<M>> | ResultInput<M>,
    { bulky = false, needsId = false }: ServeOptions = {},
  ): void {
    this.#requests.set(method.name, {
      method,
      bulky,
      needsId,
      handle: (params, signal) => handler(params as ParamsOf<M>, signal),
    });
  }

  /**
   * Registers the handler of a notification; to be called before `listen`. It also gets the raw bytes that came behind
   * the frame (E-016).
   */
  onNotification<N extends Notification>(
    notification: N,
    handler: (params: ParamsOf<N>, raw: readonly Uint8Array[] | undefined) => void | Promise<void>,
  ): void {
    this.#notifications.set(notification.name, {
      notification,
      handle: (params, raw) => handler(params as ParamsOf<N>, raw),
    });
  }

  listen(): void {
    if (!this.#isClosed) this.#rpc.listen();
  }

  /**
   * Sends a request and waits for its answer.
   *
   * Rejects with a `CookieError`: the peer's code, `timeout`, `cancelled`, `invalid_params` for our own bad params,
   * `resource_limit` for a frame over the cap, `protocol_violation` for an invalid result, and when the connection is
   * lost `plugin_crashed` in the kernel, `closed` in a client, else `shutting_down`.
   */
  async request<M extends Method>(
    method: M,
    params: ParamsInput<M>,
    options: RequestOptions = {},
  ): Promise<ResultOf<M>> {
    const { secret } = options;
    const checked = this.#checkOutgoing(method, params);
    const sent = secret ? { ...(checked as object), [secret.member]: secret } : checked;
    if (this.#isClosed) throw this.#lostError(method.name);
    if (options.signal?.aborted) {
      throw new CookieError("cancelled", `${method.name} was cancelled before it was sent`);
    }
    let answer: unknown;
    const isLimited = options.signal !== undefined || options.timeoutMs !== undefined;
    if (!isLimited && options.onSent === undefined) {
      answer = await this.#settle(method.name, this.#rpc.sendRequest(method.name, sent));
    } else {
      const source = new CancellationTokenSource();
      const response = this.#rpc.sendRequest(method.name, sent, source.token);
      const cancelPeer = () => source.cancel();
      options.onSent?.(cancelPeer);
      const settled = this.#settle(method.name, response);
      answer = isLimited
        ? await awaitAnswer(settled, { ...options, method: method.name, cancelPeer })
        : await settled;
    }
    const result = checkValue(method.result, answer);
    if (result.ok) return result.value as ResultOf<M>;
    throw new CookieError(
      "protocol_violation",
      `invalid result of ${method.name}: ${result.field}: ${result.problem}`,
      { data: { field: result.field } },
    );
  }

  /**
   * Sends a notification; resolves when the stream took it, so awaiting it is back-pressure. On a closed connection it
   * is dropped. Rejects with `invalid_params` or `resource_limit` only. `raw` is written behind the frame (E-016) and
   * must not change until then.
   */
  async notify<N extends Notification>(
    notification: N,
    params: ParamsInput<N>,
    raw?: readonly Uint8Array[],
  ): Promise<void> {
    const sent = this.#checkOutgoing(notification, params);
    if (this.#isClosed) return;
    const frame: NotificationMessage = {
      jsonrpc: "2.0",
      method: notification.name,
      params: sent as object,
    };
    return this.#writer.write(raw === undefined ? frame : withBytes(frame, raw));
  }

  /** Resolves when everything that came is answered. */
  async answered(): Promise<void> {
    while (this.#serving.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onAnswered = resolve;
      });
    }
    // The library writes an answer some turns after its handler is done.
    await nextTurn();
  }

  /** Fails what is pending, aborts what is served, and ends our side of the transport. Idempotent. */
  close(reason: CloseReason = "done"): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#closeTimer);
    // Without dispose the requests pending at a dead peer would never settle.
    this.#rpc.dispose();
    this.#options.transport.close(reason);
    for (const controller of this.#serving) controller.abort();
    this.#serving.clear();
    this.#resolveClosed();
    this.#options.onClose?.();
  }

  /** A peer that died closes both pipes in any order, and what it wrote last is still to be read. */
  #closeSoon(): void {
    if (this.#isClosed) return;
    this.#closeTimer ??= setTimeout(() => this.close(), LAST_FRAMES_MS).unref();
  }

  async #settle(name: string, response: Promise<unknown>): Promise<unknown> {
    const takeFailure = this.#writer.failureOfLastRequest();
    try {
      return await response;
    } catch (error) {
      const failure = takeFailure();
      if (isCookieError(failure)) throw failure;
      if (this.#isClosed || !(error instanceof ResponseError)) throw this.#lostError(name);
      throw fromWireError(error, { lines: METHODS_WITH_LONG_ERRORS.has(name) });
    }
  }

  async #serveRequest(name: string, params: unknown, token: CancellationToken): Promise<unknown> {
    const controller = new AbortController();
    // A cancellation that came in one read with its request is already in the token and fires no event.
    if (token.isCancellationRequested) controller.abort();
    else token.onCancellationRequested(() => controller.abort());
    this.#serving.add(controller);
    try {
      const answer = () => this.#answer(name, params ?? {}, controller.signal);
      const { bulky = false } = this.#requests.get(name) ?? {};
      if (!bulky && this.#roomFor(bulky) === undefined) return await answer();
      return await this.#answerLater(answer, bulky, controller.signal);
    } catch (error) {
      // The peer learns nothing of it, so it must be heard here.
      if (!isCookieError(error)) this.#reportProtocol(error);
      throw toResponseError(toWireError(error, { lines: METHODS_WITH_LONG_ERRORS.has(name) }));
    } finally {
      this.#serving.delete(controller);
      this.#onAnswered();
    }
  }

  /** In its turn, and not before the peer has read the answers that it has. */
  async #answerLater(
    answer: () => Promise<unknown>,
    bulky: boolean,
    signal: AbortSignal,
  ): Promise<unknown> {
    const frame = this.#arriving;
    if (frame !== undefined) this.#delayed.add(frame);
    const settle = () => {
      if (frame !== undefined && this.#delayed.delete(frame)) {
        this.#options.transport.flow?.settled(frame);
      }
    };
    if (bulky) await this.#bulky.begin();
    try {
      await this.#roomFor(bulky);
      // Others may go on to wait for somebody while the peer is read.
      if (!bulky) settle();
      if (signal.aborted) throw new CookieError("cancelled", "cancelled before it was begun");
      return await answer();
    } finally {
      if (bulky) this.#bulky.end();
      settle();
    }
  }

  /** A large answer waits in any case until the peer has read those before. */
  #roomFor(bulky: boolean): Promise<void> | undefined {
    const { servesReadersOnly, transport } = this.#options;
    return bulky || servesReadersOnly === true ? transport.room?.() : undefined;
  }

  async #answer(name: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const entry = this.#requests.get(name);
    if (entry === undefined) {
      throw new CookieError("method_not_found", `no such method: ${name.slice(0, 128)}`);
    }
    const checked = checkValue(entry.method.params, params);
    if (!checked.ok) throw invalidParams(name, checked);
    const result = checkValue(entry.method.result, await entry.handle(checked.value, signal));
    if (result.ok) return result.value;
    throw new CookieError(
      "internal",
      `the result of ${name} is invalid: ${result.field}: ${result.problem}`,
    );
  }

  #receiveNotification(message: NotificationMessage): void {
    this.#gate.dispatched(message);
    const done = this.#handleNotification(message);
    if (done === undefined) this.#options.transport.flow?.settled(message);
    else void this.#settleNotification(message, done);
  }

  async #settleNotification(message: NotificationMessage, done: Promise<void>): Promise<void> {
    try {
      await done;
    } catch (error) {
      this.#reportProtocol(error);
    }
    this.#options.transport.flow?.settled(message);
  }

  #handleNotification(message: NotificationMessage): Promise<void> | undefined {
    const entry = this.#notifications.get(message.method);
    if (entry === undefined) return this.#serveWithoutAnswer(message);
    try {
      const raw = bytesBehind(message);
      if (raw !== undefined && !entry.notification.raw) {
        throw new CookieError("protocol_violation", `${message.method} takes no raw bytes`);
      }
      const checked = checkValue(entry.notification.params, message.params ?? {});
      if (!checked.ok) throw invalidParams(message.method, checked);
      return entry.handle(checked.value, raw) ?? undefined;
    } catch (error) {
      this.#reportProtocol(error);
      return undefined;
    }
  }

  /** Whoever gives no id hears of no failure either. */
  #serveWithoutAnswer({ method, params }: NotificationMessage): Promise<void> | undefined {
    const wanted = this.#requests.get(method);
    if (this.#options.servesWithoutId !== true || wanted === undefined || wanted.needsId) {
      return undefined;
    }
    const controller = new AbortController();
    this.#serving.add(controller);
    return this.#answer(method, params ?? {}, controller.signal)
      .then(
        () => undefined,
        (error: unknown) => {
          if (!isCookieError(error)) this.#reportProtocol(error);
        },
      )
      .finally(() => this.#serving.delete(controller));
  }

  #checkOutgoing(method: Method | Notification, params: unknown): unknown {
    const checked = checkValue(method.params, params);
    if (checked.ok) return checked.value;
    throw invalidParams(method.name, checked);
  }

  #reportProtocol(error: unknown): void {
    const known = isCookieError(error)
      ? error
      : new CookieError("internal", "a handler failed", { cause: error });
    this.#options.onProtocolError?.(known);
  }

  #lostError(method: string): CookieError {
    if (this.#options.side === "kernel") {
      return new CookieError("plugin_crashed", `the plugin's connection ended during ${method}`);
    }
    const code = this.#options.side === "client" ? "closed" : "shutting_down";
    return new CookieError(code, `the connection was closed during ${method}`);
  }
}

function invalidParams(
  method: string,
  checked: { readonly field: string; readonly problem: string },
): CookieError {
  return new CookieError(
    "invalid_params",
    `invalid params of ${method}: ${checked.field}: ${checked.problem}`,
    { data: { field: checked.field } },
  );
}

function isPlainNotification(message: Message): message is NotificationMessage {
  return Messages.isNotification(message) && message.method !== "$/cancelRequest";
}
