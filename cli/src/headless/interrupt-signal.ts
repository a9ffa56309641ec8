import { isatty } from "node:tty";

/** Exit code of a run after a second signal (C 7.3). */
const INTERRUPTED_TWICE = 130;

/** Why this process stops its run. */
export type StopCause = "user" | "output";

export interface InterruptListener {
  /** The run is being stopped. */
  onStopping(): void;
  /** The process ends now: the last chance to leave the terminal tidy. */
  onExit(): void;
}

/**
 * SIGINT and SIGTERM ask the run to stop; a second one ends the process at once. A terminal that closes asks too, but
 * says so several times. Without a terminal it is not heeded: that is how `nohup` starts a command, and the runtime
 * does not tell that the signal was to be ignored.
 */
export class InterruptSignal {
  readonly #controller = new AbortController();
  readonly #onSignal: () => void;
  readonly #onHangUp: () => void;

  constructor(listener: InterruptListener, secondExitCode = INTERRUPTED_TWICE) {
    let signals = 0;
    this.#onSignal = () => {
      signals += 1;
      if (signals > 1) {
        listener.onExit();
        process.exit(secondExitCode);
      }
      listener.onStopping();
      this.abort("user");
    };
    const hadTerminal = [0, 1, 2].some(isatty);
    this.#onHangUp = () => {
      if (hadTerminal) this.abort("user");
    };
    process.on("SIGINT", this.#onSignal);
    process.on("SIGTERM", this.#onSignal);
    process.on("SIGHUP", this.#onHangUp);
  }

  /** Aborted with a `StopCause`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(cause: StopCause): void {
    this.#controller.abort(cause);
  }

  dispose(): void {
    process.off("SIGINT", this.#onSignal);
    process.off("SIGTERM", this.#onSignal);
    process.off("SIGHUP", this.#onHangUp);
  }
}
