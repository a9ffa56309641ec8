/** News that a reader may leave unread. */
const CAPACITY = 4096;

/**
 * What arrived and was not read yet, in order. When the reader lags too far the rest is dropped and `overflow` is
 * read in its place, so that it can ask again instead of holding up the connection.
 */
export class DeliveryQueue<T> implements AsyncIterable<T> {
  readonly #overflow: T;
  #items: T[] = [];
  #isFull = false;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(overflow: T) {
    this.#overflow = overflow;
  }

  push(item: T): void {
    if (this.#ended || this.#isFull) return;
    this.#isFull = this.#items.length >= CAPACITY;
    this.#items.push(this.#isFull ? this.#overflow : item);
    this.#wake?.();
  }

  /** Lets the reader finish what is queued, then stop. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** Breaking out of the loop leaves the queue open, so that reading can go on later. */
  [Symbol.asyncIterator](): AsyncIterator<T> {
    return {
      next: async (): Promise<IteratorResult<T>> => {
        for (;;) {
          const item = this.#items.shift();
          if (item !== undefined) {
            if (this.#items.length === 0) this.#isFull = false;
            return { done: false, value: item };
          }
          if (this.#ended) return { done: true, value: undefined };
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = null;
        }
      },
    };
  }
}
