import { CookieError } from "@cookie-agent/sdk/protocol";

/** A FIFO of commands, one at a time; `busy` when `capacity` commands wait (S-006). */
export class Mailbox {
  readonly #capacity: number;
  #waiting = 0;
  #tail: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(capacity = 256) {
    this.#capacity = capacity;
  }

  /** Commands that have not begun. */
  get waiting(): number {
    return this.#waiting;
  }

  run<T>(command: () => Promise<T> | T): Promise<T> {
    if (this.#closed) {
      return Promise.reject(new CookieError("shutting_down", "the session is closing"));
    }
    if (this.#waiting >= this.#capacity) {
      return Promise.reject(new CookieError("busy", "too many commands wait for this session"));
    }
    this.#waiting += 1;
    const result = this.#tail.then(() => {
      this.#waiting -= 1;
      return command();
    });
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Refuses further commands and waits for those already accepted. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#tail;
  }
}
