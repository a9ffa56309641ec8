/** Remembers how to take back changes of maps, sets and fields until they are known to hold. */
export class UndoJournal {
  #steps: (() => void)[] = [];
  #isOpen = true;

  add<T>(set: Set<T>, value: T): void {
    if (this.#isOpen && !set.has(value)) this.#steps.push(() => set.delete(value));
    set.add(value);
  }

  discard<T>(set: Set<T>, value: T): void {
    if (set.delete(value) && this.#isOpen) this.#steps.push(() => set.add(value));
  }

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    if (this.#isOpen) {
      const before = map.get(key);
      this.#steps.push(() => (before === undefined ? map.delete(key) : map.set(key, before)));
    }
    map.set(key, value);
  }

  remove<K, V>(map: Map<K, V>, key: K): void {
    const before = map.get(key);
    if (before === undefined) return;
    map.delete(key);
    if (this.#isOpen) this.#steps.push(() => map.set(key, before));
  }

  assign<T extends object>(target: T, changes: Partial<T>): void {
    if (this.#isOpen) {
      const before: Partial<T> = {};
      for (const key of Object.keys(changes) as (keyof T)[]) before[key] = target[key];
      this.#steps.push(() => Object.assign(target, before));
    }
    Object.assign(target, changes);
  }

  /** From here to `resume` nothing is remembered: what changes holds at once. */
  pause(): void {
    this.#isOpen = false;
  }

  resume(): void {
    this.#isOpen = true;
  }

  keep(): void {
    this.#steps = [];
  }

  undo(): void {
    for (const step of this.#steps.reverse()) step();
    this.#steps = [];
  }
}
