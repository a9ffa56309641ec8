import type { Connection } from "../rpc/connection.ts";
import { ProgressSender } from "./progress-sender.ts";
import { StdinFeed } from "./stdin-feed.ts";

export interface RunningCallOptions {
  readonly connection: Connection;
  readonly invocationId: string;
  /** Aborted by `$/cancelRequest` and by the end of the connection. */
  readonly signal: AbortSignal;
  readonly windowBytes: number;
  /** Whether the kernel takes raw output (E-016). */
  readonly raw: boolean;
  readonly stdin: boolean;
}

/** What belongs to one call while it runs: its output, its input and its end. */
export class RunningCall {
  readonly progress: ProgressSender;
  readonly stdin: StdinFeed | null;
  readonly signal: AbortSignal;
  readonly finished: Promise<void>;
  readonly #stop = new AbortController();
  #resolveFinished: () => void = () => {};

  constructor(options: RunningCallOptions) {
    const { signal: cancelled } = options;
    this.signal = this.#stop.signal;
    this.stdin = options.stdin ? new StdinFeed() : null;
    if (cancelled.aborted) this.#cancel(cancelled.reason);
    else cancelled.addEventListener("abort", () => this.#cancel(cancelled.reason), { once: true });
    this.progress = new ProgressSender({ ...options, signal: this.signal });
    this.finished = new Promise((resolve) => {
      this.#resolveFinished = resolve;
    });
  }

  /** The plugin has to leave. */
  abort(): void {
    this.#cancel();
    this.progress.giveUp();
  }

  finish(): void {
    this.stdin?.end();
    this.#resolveFinished();
  }
  #cancel(reason?: unknown): void {
    this.#stop.abort(reason);
    this.stdin?.end();
  }
}
