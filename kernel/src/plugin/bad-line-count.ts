/** Counts skipped lines of a pipe; true when they have become too many (E-002, E-014). */
export class BadLineCount {
  readonly #limit: { readonly count: number; readonly windowMs: number };
  #times: number[] = [];

  constructor(limit: { readonly count: number; readonly windowMs: number }) {
    this.#limit = limit;
  }

  add(nowMs: number): boolean {
    this.#times = this.#times.filter((time) => nowMs - time < this.#limit.windowMs);
    this.#times.push(nowMs);
    return this.#times.length >= this.#limit.count;
  }
}
