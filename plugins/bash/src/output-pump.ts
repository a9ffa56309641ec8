import { setTimeout as delay } from "node:timers/promises";
import type { OutputBytes } from "@cookie-agent/sdk/plugin";
import type { PipeReader } from "./pipe-reader.ts";

/** Resolves when the kernel's side has taken the output. */
export type SendOutput = (output: OutputBytes[]) => Promise<void>;

const FLUSH_BYTES = 4 * 1024;
const FLUSH_MS = 50;
/** A stream that brings more at once is given this long to fill its delta: a flood is cheaper in large ones. */
const GATHER_MS = 2;
/** With so much there is nothing to gather any more. */
const FULL_BYTES = 384 * 1024;
/** A pipe that some process keeps open after the shell's exit is read until it is quiet for this long… */
const QUIET_MS = 50;
/** …or until it has brought this much. */
const MAX_DRAIN_BYTES = 1024 * 1024;
const POLL_MS = 10;

/**
 * Carries the pipes of one child to the kernel (T-075): a delta at 4 KiB or after 50 ms, one at a time. While
 * one is pending the pipes fill and then throttle the child, so memory stays flat and timers fire.
 */
export class OutputPump {
  readonly #pipes: ReadonlyMap<string, PipeReader>;
  readonly #send: SendOutput;
  #timer: NodeJS.Timeout | undefined;
  #gathering: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #drained: Promise<void> | undefined;
  #closed = false;

  constructor(pipes: Readonly<Record<string, PipeReader>>, send: SendOutput) {
    this.#send = send;
    this.#pipes = new Map(Object.entries(pipes));
    for (const pipe of this.#pipes.values()) pipe.onData = () => this.#schedule();
    this.#schedule();
  }

  /**
   * Called once the shell is gone: takes what the pipes still hold, without waiting for those who keep them open,
   * and sends everything. Rejects with the error of a delta that could not be sent.
   */
  drain(): Promise<void> {
    this.#drained ??= this.#drain();
    return this.#drained;
  }

  /** Like `drain`, but gives up after a while; for a command that has failed already. Never rejects. */
  async drainWithin(limitMs: number): Promise<void> {
    const drained = this.drain().catch(() => undefined);
    const timer = new AbortController();
    await Promise.race([drained, delay(limitMs, undefined, { signal: timer.signal })]);
    timer.abort();
    for (const pipe of this.#pipes.values()) pipe.close();
  }

  async #drain(): Promise<void> {
    await this.#untilQuiet();
    this.#closed = true;
    this.#clearTimers();
    for (const pipe of this.#pipes.values()) pipe.close();
    await this.#sending;
    await this.#sendHeld();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #untilQuiet(): Promise<void> {
    const start = this.#received();
    let seen = start;
    let quietSince = performance.now();
    for (;;) {
      const open = [...this.#pipes.values()].filter((pipe) => !pipe.ended);
      if (open.length === 0 || this.#failure !== undefined) return;
      if (this.#received() - start > MAX_DRAIN_BYTES) return;
      await Promise.race([delay(POLL_MS), ...open.map((pipe) => pipe.end)]);
      const now = performance.now();
      if (this.#received() !== seen || this.#sending !== undefined) {
        seen = this.#received();
        quietSince = now;
      } else if (now - quietSince >= QUIET_MS) {
        return;
      }
    }
  }

  #received(): number {
    return [...this.#pipes.values()].reduce((sum, pipe) => sum + pipe.receivedBytes, 0);
  }

  #schedule(): void {
    if (this.#closed || this.#sending !== undefined) return;
    let heldBytes = 0;
    for (const pipe of this.#pipes.values()) heldBytes = Math.max(heldBytes, pipe.heldBytes);
    if (heldBytes === 0) return;
    if (heldBytes >= FULL_BYTES) {
      this.#start();
    } else if (heldBytes >= FLUSH_BYTES) {
      this.#gathering ??= setTimeout(() => this.#start(), GATHER_MS);
    } else {
      this.#timer ??= setTimeout(() => this.#start(), FLUSH_MS);
    }
  }

  #clearTimers(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#gathering);
    this.#timer = undefined;
    this.#gathering = undefined;
  }

  #start(): void {
    this.#clearTimers();
    if (this.#sending !== undefined) return;
    this.#sending = this.#sendHeld().finally(() => {
      this.#sending = undefined;
      this.#schedule();
    });
  }

  /** Never rejects: a failed delta is kept for `drain` and the rest of the output is dropped. */
  async #sendHeld(): Promise<void> {
    const output = [...this.#pipes].flatMap(([stream, pipe]) =>
      pipe.take().map((bytes) => ({ stream, bytes })),
    );
    try {
      if (output.length > 0 && this.#failure === undefined) await this.#send(output);
    } catch (error) {
      this.#failure = { error };
    }
    for (const pipe of this.#pipes.values()) pipe.release();
  }
}
