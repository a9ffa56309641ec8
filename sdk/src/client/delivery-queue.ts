/**
 * What arrived and was not read yet, in order. It is bounded by the sender: the kernel stops filling a
 * subscription whose reader lags and says so with a gap.
 */
export class DeliveryQueue<T> implements AsyncIterable<T> {
  #items: T[] = [];
  #ended = false;
  #wake: (() => void) | null = null;

  push(item: T): void {
    if (this.#ended) return;
    this.#items.push(item);
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
          if (item !== undefined) return { done: false, value: item };
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
