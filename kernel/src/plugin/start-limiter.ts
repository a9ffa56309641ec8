import { createDeferred } from "../support/deferred.ts";

interface Waiter {
  readonly urgent: () => boolean;
  start(): void;
}

/** Bounds how many plugins start at once; a start that a call waits for goes first (E-053). */
export class StartLimiter {
  readonly #limit: number;
  readonly #waiting: Waiter[] = [];
  #running = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Calls `start` synchronously while a place is free. `urgent` is asked whenever a place becomes free. */
  async run<T>(start: () => Promise<T>, urgent: () => boolean): Promise<T> {
    if (this.#running >= this.#limit) {
      const turn = createDeferred();
      this.#waiting.push({ urgent, start: turn.resolve });
      await turn.promise;
    } else {
      this.#running += 1;
    }
    try {
      return await start();
    } finally {
      this.#next();
    }
  }

  #next(): void {
    const index = Math.max(
      0,
      this.#waiting.findIndex(({ urgent }) => urgent()),
    );
    const [waiter] = this.#waiting.splice(index, 1);
    // The place passes to the next one without becoming free in between.
    if (waiter === undefined) this.#running -= 1;
    else waiter.start();
  }
}
