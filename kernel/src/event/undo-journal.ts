/** Remembers how to take back changes of maps, sets and fields until they are known to hold. */
export class UndoJournal {
  #steps: (() => void)[] = [];

  add<T>(set: Set<T>, value: T): void {
    if (set.has(value)) return;
    set.add(value);
    this.#steps.push(() => set.delete(value));
  }

  discard<T>(set: Set<T>, value: T): void {
    if (set.delete(value)) this.#steps.push(() => set.add(value));
  }

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    map.set(key, value);
    this.#steps.push(() => (before === undefined ? map.delete(key) : map.set(key, before)));
  }

  remove<K, V>(map: Map<K, V>, key: K): void {
    const before = map.get(key);
    if (before === undefined) return;
    map.delete(key);
    this.#steps.push(() => map.set(key, before));
  }

  assign<T extends object>(target: T, changes: Partial<T>): void {
    const before: Partial<T> = {};
    for (const key of Object.keys(changes) as (keyof T)[]) before[key] = target[key];
    Object.assign(target, changes);
    this.#steps.push(() => Object.assign(target, before));
  }

  keep(): void {
    this.#steps = [];
  }

  undo(): void {
    for (const step of this.#steps.reverse()) step();
    this.#steps = [];
  }
}
