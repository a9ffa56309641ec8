import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { OutputBytes } from "@cookie-agent/sdk/plugin";

/** Resolves when the kernel's side has taken the output. */
export type SendOutput = (output: OutputBytes[]) => Promise<void>;

const FLUSH_BYTES = 4 * 1024;
const FLUSH_MS = 50;
/** A stream that brings more at once is given this long to fill its delta: a flood is cheaper in large ones. */
const GATHER_MS = 2;
/** Held per stream while a delta is on its way; beyond it the pipe is not read. One read more fits one delta. */
const HOLD_BYTES = 192 * 1024;
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
  readonly #sources: readonly Source[];
  readonly #send: SendOutput;
  #timer: NodeJS.Timeout | undefined;
  #gathering: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #drained: Promise<void> | undefined;
  #closed = false;

  constructor(pipes: Readonly<Record<string, Readable>>, send: SendOutput) {
    this.#send = send;
    this.#sources = Object.entries(pipes).map(
      ([name, pipe]) => new Source(name, pipe, () => this.#schedule()),
    );
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
    for (const source of this.#sources) source.close();
  }

  async #drain(): Promise<void> {
    await this.#untilQuiet();
    this.#closed = true;
    this.#clearTimers();
    for (const source of this.#sources) source.close();
    await this.#sending;
    await this.#sendHeld();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #untilQuiet(): Promise<void> {
    const start = this.#received();
    let seen = start;
    let quietSince = performance.now();
    for (;;) {
      const open = this.#sources.filter((source) => !source.ended);
      if (open.length === 0 || this.#failure !== undefined) return;
      if (this.#received() - start > MAX_DRAIN_BYTES) return;
      await Promise.race([delay(POLL_MS), ...open.map((source) => source.end)]);
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
    return this.#sources.reduce((sum, source) => sum + source.receivedBytes, 0);
  }

  #schedule(): void {
    if (this.#closed || this.#sending !== undefined) return;
    const heldBytes = Math.max(...this.#sources.map((source) => source.heldBytes));
    if (heldBytes >= HOLD_BYTES) {
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
      if (this.#sources.some((source) => source.heldBytes > 0)) this.#schedule();
    });
  }

  /** Never rejects: a failed delta is kept for `drain` and the rest of the output is dropped. */
  async #sendHeld(): Promise<void> {
    const output = this.#sources.flatMap((source) => source.take());
    if (output.length === 0 || this.#failure !== undefined) return;
    try {
      await this.#send(output);
    } catch (error) {
      this.#failure = { error };
    }
  }
}

/** One pipe: holds what it brings until it is taken. */
class Source {
  readonly #name: string;
  readonly #pipe: Readable;
  readonly end: Promise<void>;
  #held: Uint8Array[] = [];
  heldBytes = 0;
  receivedBytes = 0;
  ended = false;
  #paused = false;

  constructor(name: string, pipe: Readable, onData: () => void) {
    this.#name = name;
    this.#pipe = pipe;
    pipe.on("data", (bytes: Uint8Array) => {
      this.receivedBytes += bytes.byteLength;
      this.heldBytes += bytes.byteLength;
      this.#held.push(bytes);
      if (this.heldBytes >= HOLD_BYTES) {
        this.#paused = true;
        pipe.pause();
      }
      onData();
    });
    // A broken pipe is an end like any other; `close` follows.
    pipe.on("error", () => undefined);
    this.end = new Promise((resolve) => {
      pipe.once("close", () => {
        this.ended = true;
        resolve();
      });
    });
  }

  /** Hands over what is held and lets the pipe go on. */
  take(): OutputBytes[] {
    const held = this.#held;
    this.#held = [];
    this.heldBytes = 0;
    if (this.#paused) {
      this.#paused = false;
      this.#pipe.resume();
    }
    return held.map((bytes) => ({ stream: this.#name, bytes }));
  }

  /** Stops reading. */
  close(): void {
    this.#pipe.destroy();
  }
}
