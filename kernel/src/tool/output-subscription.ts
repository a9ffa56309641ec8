import type { OutputNotice } from "./output-notice.ts";

/** Messages of one stream that a reader may leave unread (D-073). */
const QUEUE_CAPACITY = 256;

/** Live output for one reader; a slow one loses deltas of a stream and is told with a gap where it goes on. */
export class OutputSubscription implements AsyncIterable<OutputNotice> {
  readonly #onClose: () => void;
  readonly #waiting = new Map<string, number>();
  readonly #lossy = new Set<string>();
  #queue: OutputNotice[] = [];
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  push(notice: OutputNotice): void {
    if (this.#closed) return;
    const key = streamKey(notice);
    if (notice.kind !== "delta") {
      this.#enqueue(key, notice);
      return;
    }
    // Two places: a gap and the delta that ends it come together.
    if ((this.#waiting.get(key) ?? 0) > QUEUE_CAPACITY - 2) {
      this.#lossy.add(key);
      return;
    }
    if (this.#lossy.delete(key)) {
      const { toolCallId, stream, byteOffset } = notice;
      this.#enqueue(key, { kind: "gap", toolCallId, stream, nextOffset: byteOffset });
    }
    this.#enqueue(key, notice);
  }

  /** Ends the iteration and drops what is unread. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue = [];
    this.#waiting.clear();
    this.#onClose();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<OutputNotice, void, void> {
    try {
      while (!this.#closed) {
        const unread = this.#queue;
        this.#queue = [];
        for (const notice of unread) {
          this.#leave(streamKey(notice));
          yield notice;
          if (this.#closed) return;
        }
        if (this.#queue.length === 0) await this.#arrival();
      }
    } finally {
      this.close();
    }
  }

  #enqueue(key: string, notice: OutputNotice): void {
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1);
    this.#queue.push(notice);
    this.#wake?.();
  }

  #leave(key: string): void {
    const left = (this.#waiting.get(key) ?? 1) - 1;
    if (left > 0) this.#waiting.set(key, left);
    else this.#waiting.delete(key);
  }

  #arrival(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function streamKey({ toolCallId, stream }: OutputNotice): string {
  return `${toolCallId}/${stream}`;
}
