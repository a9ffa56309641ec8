import { CookieError } from "@cookie-agent/sdk/protocol";

/** What changes a session as a whole. */
export type BarrierCommand = "compact" | "revert";

/**
 * Commands that change a session as a whole, and that a compaction may keep waiting for minutes: of each kind one waits,
 * and a second one is refused instead of adding to the queue (S 5.10). The queue itself is the session's mailbox.
 */
export class BarrierCommands {
  readonly #known = new Set<BarrierCommand>();

  get isCompacting(): boolean {
    return this.#known.has("compact");
  }

  run<T>(command: BarrierCommand, act: () => Promise<T>): Promise<T> {
    if (this.isCompacting && this.#known.has(command)) {
      const problem = `a ${command} of this session is already under way; wait for its end`;
      return Promise.reject(new CookieError("busy", problem));
    }
    this.#known.add(command);
    return act().finally(() => this.#known.delete(command));
  }
}
