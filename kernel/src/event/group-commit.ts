import { createDeferred, type Deferred } from "../support/deferred.ts";

/** What can be synced; a log file of any store. */
export interface Syncable {
  sync(): Promise<void>;
}

/**
 * Shares syncs: whoever asks while a round is under way is served by the next round, together with all others who
 * asked meanwhile, whatever session they belong to (S-247).
 */
export class GroupCommit {
  #waiting = new Map<Syncable, Deferred<void>>();
  #running = false;

  /** Resolves when everything appended to `file` before the call is durable. */
  sync(file: Syncable): Promise<void> {
    const waiting = this.#waiting.get(file) ?? createDeferred();
    this.#waiting.set(file, waiting);
    if (!this.#running) {
      this.#running = true;
      // A microtask later, so that all who ask in this turn of the event loop share the round.
      queueMicrotask(() => void this.#runRounds());
    }
    return waiting.promise;
  }

  async #runRounds(): Promise<void> {
    while (this.#waiting.size > 0) {
      const round = this.#waiting;
      this.#waiting = new Map();
      await Promise.all([...round].map(([file, waiting]) => settle(file, waiting)));
    }
    this.#running = false;
  }
}

async function settle(file: Syncable, waiting: Deferred<void>): Promise<void> {
  try {
    await file.sync();
    waiting.resolve();
  } catch (error) {
    waiting.reject(error);
  }
}
