import {
  type DataCallback,
  type Disposable,
  type Message,
  type MessageReader,
  Message as Messages,
} from "vscode-jsonrpc";
import { CookieError } from "../protocol/errors.ts";
import { skipsDispatchQueue } from "./frame-valve.ts";
import type { Transport } from "./transport.ts";

/**
 * Stands between a transport and the library and lets only well-formed frames with an id that is not queued already
 * through: the library's queue is keyed by id and would silently replace the earlier frame.
 */
export class InboundGate implements MessageReader {
  readonly onError: MessageReader["onError"];
  readonly onClose: MessageReader["onClose"];
  readonly onPartialMessage: MessageReader["onPartialMessage"];
  readonly #transport: Transport;
  readonly #report: (problem: CookieError) => void;
  readonly #queuedKeys = new Set<string>();

  constructor(transport: Transport, report: (problem: CookieError) => void) {
    this.#transport = transport;
    this.#report = report;
    this.onError = transport.reader.onError;
    this.onClose = transport.reader.onClose;
    this.onPartialMessage = transport.reader.onPartialMessage;
  }

  listen(callback: DataCallback): Disposable {
    return this.#transport.reader.listen((frame) => {
      const problem = this.#problemOf(frame);
      if (problem === undefined) return callback(frame);
      this.#transport.flow?.dispatched(frame);
      this.#transport.flow?.settled(frame);
      this.#report(new CookieError("protocol_violation", problem));
    });
  }

  /** The frame left the library's queue. */
  dispatched(frame: Message): void {
    const key = queueKey(frame);
    if (key !== undefined) this.#queuedKeys.delete(key);
    this.#transport.flow?.dispatched(frame);
  }

  dispose(): void {
    this.#queuedKeys.clear();
    this.#transport.reader.dispose();
  }

  #problemOf(frame: Message): string | undefined {
    if (skipsDispatchQueue(frame)) {
      return isCancellation(frame) ? undefined : "a cancellation needs the id of a request";
    }
    if (Messages.isNotification(frame)) return undefined;
    const key = queueKey(frame);
    if (key === undefined) return "a frame must be a request, a notification or a response";
    if (this.#queuedKeys.has(key)) return "the id of a waiting message was used again";
    this.#queuedKeys.add(key);
    return undefined;
  }
}

function queueKey(frame: Message): string | undefined {
  if (Messages.isRequest(frame)) return `request ${frame.id}`;
  if (Messages.isResponse(frame) && frame.id !== null) return `response ${frame.id}`;
  return undefined;
}

function isCancellation(frame: Message): boolean {
  if (!Messages.isNotification(frame) || frame.params === undefined) return false;
  if (Array.isArray(frame.params) || !("id" in frame.params)) return false;
  return typeof frame.params.id === "string" || typeof frame.params.id === "number";
}
