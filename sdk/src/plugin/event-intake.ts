/** Events that may wait behind a handler that takes its time. */
const MAX_WAITING = 1024;

/**
 * Runs handlers of events: those of one session one after another, those of several side by side. Reading never waits
 * for a handler, because calls come the same way.
 */
export class EventIntake {
  readonly #report: (problem: string) => void;
  /** The last handler of each session that has something to do. */
  readonly #tails = new Map<string, Promise<void>>();
  #waiting = 0;
  #dropped = 0;

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** What runs and waits, one promise per session; they do not reject. */
  get open(): Promise<void>[] {
    return [...this.#tails.values()];
  }

  /** @param what Names the event where its handler fails. */
  take(sessionId: string, what: string, handle: () => void | Promise<void>): void {
    const before = this.#tails.get(sessionId);
    if (before === undefined) {
      this.#keep(sessionId, this.#run(what, handle));
      return;
    }
    if (this.#waiting >= MAX_WAITING) {
      if (this.#dropped === 0)
        this.#report("events come faster than they are handled; some are dropped");
      this.#dropped += 1;
      return;
    }
    this.#waiting += 1;
    const turn = before.then(() => {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#tellDropped();
      return this.#run(what, handle);
    });
    this.#keep(sessionId, turn);
  }

  /** Undefined when the handler is done already. */
  #run(what: string, handle: () => void | Promise<void>): Promise<void> | undefined {
    try {
      const result: unknown = handle();
      if (!isThenable(result)) return undefined;
      return Promise.resolve(result).then(
        () => undefined,
        (error: unknown) => this.#fail(what, error),
      );
    } catch (error) {
      this.#fail(what, error);
      return undefined;
    }
  }

  #keep(sessionId: string, work: Promise<unknown> | undefined): void {
    if (work === undefined) return;
    const tail = work.then(() => {
      if (this.#tails.get(sessionId) === tail) this.#tails.delete(sessionId);
    });
    this.#tails.set(sessionId, tail);
  }

  #fail(what: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    this.#report(`the handler of ${what} failed: ${text}`);
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    this.#report(`${this.#dropped} events were dropped unhandled`);
    this.#dropped = 0;
  }
}

/** A handler that returns something else has returned nothing of use. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value;
}
