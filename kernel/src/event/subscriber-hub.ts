/** Events a subscriber may leave unread, the place for the gap included (S-063). */
const QUEUE_CAPACITY = 256;

/** The last item of a subscription that was cut off: ask again from this sequence number. */
export interface SubscriptionGap {
  readonly gap: number;
}

/** A live tail for one reader. */
export interface Subscription<T> extends AsyncIterable<T | SubscriptionGap> {
  /** Ends the iteration and drops what is still queued. */
  close(): void;
}

/** Hands every published event to every subscriber; a slow one loses its tail, never the others (S-063). */
export class SubscriberHub<T extends { readonly seq: number }> {
  readonly #subscribers = new Set<BoundedSubscription<T>>();

  /** @param fromSeq The last event the subscriber already has. */
  subscribe(fromSeq: number): Subscription<T> {
    const subscription = new BoundedSubscription<T>(fromSeq, () => {
      this.#subscribers.delete(subscription);
    });
    this.#subscribers.add(subscription);
    return subscription;
  }

  publish(event: T): void {
    for (const subscriber of this.#subscribers) subscriber.push(event);
  }

  /** Cuts every tail with a gap. */
  close(): void {
    for (const subscriber of this.#subscribers) subscriber.cut();
  }
}

class BoundedSubscription<T extends { readonly seq: number }> implements Subscription<T> {
  readonly #onEnd: () => void;
  #queue: (T | SubscriptionGap)[] = [];
  #lastSeq: number;
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(fromSeq: number, onEnd: () => void) {
    this.#lastSeq = fromSeq;
    this.#onEnd = onEnd;
  }

  push(event: T): void {
    if (this.#queue.length >= QUEUE_CAPACITY - 1) {
      this.cut();
      return;
    }
    this.#lastSeq = event.seq;
    this.#queue.push(event);
    this.#wake?.();
  }

  cut(): void {
    this.#queue.push({ gap: this.#lastSeq });
    this.#end();
  }

  close(): void {
    this.#queue = [];
    this.#end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T | SubscriptionGap, void, void> {
    try {
      while (true) {
        const item = this.#queue.shift();
        if (item !== undefined) yield item;
        else if (this.#ended) return;
        else await this.#arrival();
      }
    } finally {
      this.close();
    }
  }

  /** In the next turn of the event loop, so that who publishes goes on with its work first. */
  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        setImmediate(resolve);
      };
    });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
    this.#wake?.();
  }
}
