import { AbstractMessageWriter, type Message, Message as Messages } from "vscode-jsonrpc";
import type { WebSocket } from "ws";
import { MAX_CLIENT_FRAME_BYTES } from "../protocol/version.ts";
import { encodeFrame, overCap } from "./encode-frame.ts";
import { secretIn } from "./secret-text.ts";
import type { CloseReason } from "./transport.ts";

/** Messages of one connection that may wait, and the length of their text (D-080). */
const QUEUE = { messages: 512, length: 8 * 1024 * 1024 } as const;
/** Bytes that the socket may hold unsent before nothing more is handed to it, and when it goes on (D-081). */
const UNSENT_BYTES = { stop: 1024 * 1024, resume: 256 * 1024 } as const;
/** A queue that is full for so long ends its connection (D-081). */
const FULL_MS = 30_000;
/** Answers that may wait before no further request is read (D-083). */
const WAITING_ANSWERS = { stop: 128, resume: 64 } as const;

const CLOSE_CODES: Readonly<Record<CloseReason, number>> = {
  done: 1000,
  going_away: 1001,
  no_handshake: 1008,
  too_slow: 1013,
};

export interface SocketWriterOptions {
  readonly socket: WebSocket;
  /** So many answers wait that their reader has to take some first; undone when it has. */
  onAnswersWaiting(tooMany: boolean): void;
  /** The queue was full for too long. */
  onTooSlow(): void;
}

interface Waiting {
  /** As bytes when a secret is among them; whoever takes them wipes them. */
  readonly frame: string | Buffer;
  readonly isAnswer: boolean;
}

/**
 * Writes one message per frame through a bounded queue (D-080). `write` of a notification resolves when the queue has
 * room for another; answers wait for nothing, but are not handed to a socket that is behind (D-082).
 */
export class SocketWriter extends AbstractMessageWriter {
  readonly #options: SocketWriterOptions;
  readonly #socket: WebSocket;
  #queue: Waiting[] = [];
  #length = 0;
  #answers = 0;
  #stopsReading = false;
  #isBehind = false;
  #closed = false;
  readonly #vacancy = new Turnstile();
  readonly #caughtUp = new Turnstile();
  #fullTimer: NodeJS.Timeout | undefined;

  constructor(options: SocketWriterOptions) {
    super();
    this.#options = options;
    this.#socket = options.socket;
    this.#socket.on("close", () => {
      this.#stop();
      this.fireClose();
    });
  }

  /** Until the socket has sent most of what it holds; undefined while it is not behind. */
  get room(): Promise<void> | undefined {
    return this.#isBehind ? this.#caughtUp.pass : undefined;
  }

  /** Messages for a closed connection are dropped: the close event tells the owner. */
  async write(message: Message): Promise<void> {
    if (this.#closed) return;
    const frame = encode(message);
    const isAnswer = Messages.isResponse(message);
    this.#queue.push({ frame, isAnswer });
    this.#length += frame.length;
    if (isAnswer) this.#answers += 1;
    this.#send();
    if (!isAnswer && this.#isFull()) return this.#vacancy.pass;
  }

  end(): void {
    this.close("done");
  }

  /** What waits is sent first, unless the other side is too slow for it. */
  close(reason: CloseReason): void {
    if (this.#closed) return;
    if (reason !== "too_slow") {
      for (const { frame } of this.#queue.splice(0)) this.#hand(frame);
    }
    this.#stop();
    this.#socket.close(CLOSE_CODES[reason]);
    this.fireClose();
  }

  #send(): void {
    while (!this.#isBehind) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      this.#length -= next.frame.length;
      if (next.isAnswer) this.#answers -= 1;
      this.#hand(next.frame);
      this.#isBehind = this.#socket.bufferedAmount > UNSENT_BYTES.stop;
    }
    this.#watchLimits();
  }

  #hand(frame: string | Buffer): void {
    if (typeof frame === "string") {
      this.#socket.send(frame, this.#onSent);
    } else {
      this.#socket.send(frame, { binary: false }, () => {
        frame.fill(0);
        this.#onSent();
      });
    }
  }

  readonly #onSent = (): void => {
    if (!this.#isBehind || this.#closed) return;
    if (this.#socket.bufferedAmount >= UNSENT_BYTES.resume) return;
    this.#isBehind = false;
    this.#caughtUp.open();
    this.#send();
  };

  #watchLimits(): void {
    if (!this.#isFull()) {
      clearTimeout(this.#fullTimer);
      this.#fullTimer = undefined;
      this.#vacancy.open();
    } else {
      this.#fullTimer ??= setTimeout(() => this.#options.onTooSlow(), FULL_MS).unref();
    }
    const limit = this.#stopsReading ? WAITING_ANSWERS.resume : WAITING_ANSWERS.stop;
    const tooMany = this.#answers >= limit;
    if (tooMany === this.#stopsReading) return;
    this.#stopsReading = tooMany;
    this.#options.onAnswersWaiting(tooMany);
  }

  #isFull(): boolean {
    return this.#queue.length >= QUEUE.messages || this.#length >= QUEUE.length;
  }

  #stop(): void {
    this.#closed = true;
    clearTimeout(this.#fullTimer);
    for (const { frame } of this.#queue) if (typeof frame !== "string") frame.fill(0);
    this.#queue = [];
    this.#vacancy.open();
    this.#caughtUp.open();
  }
}

function encode(message: Message): string | Buffer {
  const found = secretIn(message);
  if (found === null) return encodeFrame(message, MAX_CLIENT_FRAME_BYTES).text;
  const frame = found.secret.frameOf(found.message);
  if (frame.length <= MAX_CLIENT_FRAME_BYTES) return frame;
  frame.fill(0);
  throw overCap(MAX_CLIENT_FRAME_BYTES);
}

/** One promise for all that wait until it opens again. */
class Turnstile {
  #pass: Promise<void> | undefined;
  #release: (() => void) | undefined;

  get pass(): Promise<void> {
    this.#pass ??= new Promise((resolve) => {
      this.#release = resolve;
    });
    return this.#pass;
  }

  open(): void {
    this.#release?.();
    this.#pass = undefined;
    this.#release = undefined;
  }
}
