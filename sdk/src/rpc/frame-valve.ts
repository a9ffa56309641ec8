import type { Message } from "vscode-jsonrpc";
import type { FrameFlow } from "./transport.ts";

/** Frames and bytes of one pipe that may wait before reading stops (E-012). */
const WAITING_LIMITS = { frames: 256, bytes: 8 * 1024 * 1024 } as const;

export interface FrameValveOptions {
  pause(): void;
  resume(): void;
  /** No frame waits for dispatch any more. */
  onDrained(): void;
}

/**
 * Counts the frames of a pipe that wait for dispatch or for the end of their handling, closes above the limits and
 * opens again at half of them (E-012).
 */
export class FrameValve implements FrameFlow {
  readonly #options: FrameValveOptions;
  readonly #queued = new Map<Message, number>();
  readonly #handled = new Map<Message, number>();
  #byteLength = 0;
  #closed = false;

  constructor(options: FrameValveOptions) {
    this.#options = options;
  }

  /** True when every admitted frame was dispatched. */
  get drained(): boolean {
    return this.#queued.size === 0;
  }

  /** Called before the frame is handed on; must not be called for frames that skip the dispatch queue. */
  admit(frame: Message, byteLength: number): void {
    this.#queued.set(frame, byteLength);
    this.#byteLength += byteLength;
    if (!this.#closed && this.#exceeds(1)) {
      this.#closed = true;
      this.#options.pause();
    }
  }

  dispatched(frame: Message): void {
    const byteLength = this.#queued.get(frame);
    if (byteLength === undefined) return;
    this.#queued.delete(frame);
    this.#handled.set(frame, byteLength);
    if (this.drained) this.#options.onDrained();
  }

  settled(frame: Message): void {
    const byteLength = this.#handled.get(frame);
    if (byteLength === undefined) return;
    this.#handled.delete(frame);
    this.#release(byteLength);
  }

  /** Forgets everything, for a reader whose consumer has gone. */
  reset(): void {
    this.#queued.clear();
    this.#handled.clear();
    this.#release(this.#byteLength);
  }

  #release(byteLength: number): void {
    this.#byteLength -= byteLength;
    if (this.#closed && !this.#exceeds(0.5)) {
      this.#closed = false;
      this.#options.resume();
    }
  }

  #exceeds(share: number): boolean {
    return (
      this.#queued.size + this.#handled.size > WAITING_LIMITS.frames * share ||
      this.#byteLength > WAITING_LIMITS.bytes * share
    );
  }
}

/** Cancellations overtake the queue, so they never wait. */
export function skipsDispatchQueue(frame: Message): boolean {
  return "method" in frame && frame.method === "$/cancelRequest";
}
