/** One call's place among those of its turn. */
export interface CallPlace {
  /** Resolves when every call before this one has left. */
  readonly turn: Promise<unknown>;
  leave(): void;
}

/** Lets calls go on in the order in which they entered, however long each takes to be ready for it (T-027). */
export class CallOrder {
  #before: Promise<unknown> = Promise.resolve();

  enter(): CallPlace {
    let leave: () => void = () => undefined;
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const turn = this.#before;
    this.#before = Promise.all([turn, left]);
    return { turn, leave };
  }
}
