/** The time that a request may take; it stands still while the kernel lets the plugin wait for somebody (E-107). */
export class RequestClock {
  readonly #onTimeout: () => void;
  #leftMs: number;
  #sinceMs = 0;
  #holds = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  /** Runs from the beginning. */
  constructor(timeoutMs: number, onTimeout: () => void) {
    this.#leftMs = timeoutMs;
    this.#onTimeout = onTimeout;
    this.#run();
  }

  /** Stands still until every hold was released. */
  hold(): void {
    this.#holds += 1;
    if (this.#holds > 1 || this.#stopped) return;
    clearTimeout(this.#timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#sinceMs));
  }

  release(): void {
    this.#holds -= 1;
    if (this.#holds === 0 && !this.#stopped) this.#run();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #run(): void {
    this.#sinceMs = performance.now();
    this.#timer = setTimeout(this.#onTimeout, this.#leftMs);
  }
}
