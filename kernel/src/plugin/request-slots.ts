import { CookieError } from "@cookie-agent/sdk/protocol";

interface Waiter {
  start(): void;
  fail(error: CookieError): void;
}

/** The in-flight limit of one plugin: at most `limit` unanswered requests, the others queue in order (E-052). */
export class RequestSlots {
  readonly #limit: number;
  readonly #queueLimit: number;
  readonly #waiting = new Set<Waiter>();
  #inUse = 0;
  #closed: CookieError | undefined;

  constructor(limit: number, queueLimit: number) {
    this.#limit = limit;
    this.#queueLimit = queueLimit;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get idle(): boolean {
    return this.#inUse === 0 && this.#waiting.size === 0;
  }

  /** Undefined: taken at once. Otherwise rejects with `busy`, the signal's `cancelled` or the closing error. */
  take(signal: AbortSignal): Promise<void> | undefined {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#inUse < this.#limit) {
      this.#inUse += 1;
      return undefined;
    }
    if (this.#waiting.size >= this.#queueLimit) {
      return Promise.reject(new CookieError("busy", "too many requests wait for this plugin"));
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiter);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        leave();
        reject(new CookieError("cancelled", "cancelled before the plugin was asked"));
      };
      const waiter: Waiter = {
        start: () => {
          leave();
          resolve();
        },
        fail: (error) => {
          leave();
          reject(error);
        },
      };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#inUse -= 1;
    else next.start();
  }

  /** Fails everyone who waits and everyone who comes. */
  close(error: CookieError): void {
    this.#closed = error;
    for (const waiter of [...this.#waiting]) waiter.fail(error);
  }
}
