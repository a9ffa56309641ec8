/** Mutual exclusion by key; waiters of a key are served in arrival order (T 1.7). */
export class KeyMutex {
  readonly #tails = new Map<string, Promise<void>>();

  /** Resolves with the release once every key is free; keys are queued for in one step, so no deadlock. */
  async acquire(keys: readonly string[]): Promise<() => void> {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const unique = [...new Set(keys)];
    const before = unique.map((key) => this.#tails.get(key) ?? Promise.resolve());
    for (const key of unique) {
      const tail = (this.#tails.get(key) ?? Promise.resolve()).then(() => held);
      this.#tails.set(key, tail);
      void tail.then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    }
    await Promise.all(before);
    return release;
  }
}
