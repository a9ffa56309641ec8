import { CookieError } from "../protocol/errors.ts";
import { ToolsProgress } from "../protocol/host-methods.ts";
import type { Connection } from "../rpc/connection.ts";
import { OutputDecoder } from "./output-decoder.ts";
import { type OutputPiece, piecesOf } from "./output-piece.ts";
import { type SplitDelta, splitDelta } from "./split-delta.ts";
import type { ProgressDelta } from "./tool-invocation.ts";

/** How long text may still wait for room after its call was cancelled. */
const CANCEL_WAIT_MS = 2000;

export interface ProgressSenderOptions {
  readonly connection: Connection;
  readonly invocationId: string;
  readonly signal: AbortSignal;
  /** Bytes of output that may be under way without acknowledgement (E-103). */
  readonly windowBytes: number;
  /** Whether the kernel takes raw output; else bytes go as text (E-016). */
  readonly raw: boolean;
}

/** Sends the output of one call in order, in deltas the kernel accepts (E-100), inside the window (E-103). */
export class ProgressSender {
  readonly #options: ProgressSenderOptions;
  readonly #decoder: OutputDecoder | undefined;
  #sentBytes = 0;
  #acknowledgedBytes = 0;
  /** Set while an earlier delta waits for room, so that later ones queue up behind it. */
  #tail: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  #failure: Error | undefined;
  #ended = false;
  #gaveUp = false;

  constructor(options: ProgressSenderOptions) {
    this.#options = options;
    this.#decoder = options.raw ? undefined : new OutputDecoder();
  }

  get sentText(): boolean {
    return this.#sentBytes > 0;
  }

  /** Resolves when the stream needs none of it any more. After the call has ended nothing is sent any more. */
  send(progress: ProgressDelta): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const problem = problemOf(progress);
    if (problem !== undefined) {
      const error = new CookieError("protocol_violation", `progress was given ${problem}`);
      this.#failure ??= error;
      const failed = Promise.reject(error);
      failed.catch(() => undefined);
      return failed;
    }
    const pieces = piecesOf(progress.output);
    return this.#sendAll(progress, this.#decoder?.decode(pieces) ?? pieces);
  }

  #sendAll(news: ProgressDelta, pieces: readonly OutputPiece[]): Promise<void> {
    const sent = splitDelta(news, pieces).map((delta) => this.#enqueue(delta));
    for (const each of sent) {
      // A tool may not await this; the failure then ends the call instead of the process.
      each.catch((error: unknown) => {
        this.#failure ??= error as Error;
      });
    }
    const all = settled(sent);
    all.catch(() => undefined);
    return all;
  }

  /** The kernel's cumulative count of captured bytes. */
  acknowledge(bytes: number): void {
    this.#acknowledgedBytes = Math.max(this.#acknowledgedBytes, bytes);
    this.#wake?.();
  }

  /** Nobody will make room any more: drops what waits for it. */
  giveUp(): void {
    this.#gaveUp = true;
    this.#wake?.();
  }

  /** Sends what still waits and takes nothing more; rejects when something given to `send` could not be sent. */
  async end(): Promise<void> {
    this.#ended = true;
    void this.#sendAll({}, this.#decoder?.end() ?? []);
    await this.#tail?.catch(() => {});
    if (this.#failure !== undefined) throw this.#failure;
  }

  #enqueue(delta: SplitDelta): Promise<void> {
    if (this.#tail === undefined && this.#hasRoom(delta.byteLength)) return this.#write(delta);
    const turn = (this.#tail ?? Promise.resolve()).then(async () => {
      if (await this.#waitForRoom(delta.byteLength)) await this.#write(delta);
    });
    this.#tail = turn;
    turn.then(
      () => this.#clearTail(turn),
      () => this.#clearTail(turn),
    );
    return turn;
  }

  #clearTail(turn: Promise<void>): void {
    if (this.#tail === turn) this.#tail = undefined;
  }

  #write(delta: SplitDelta): Promise<void> {
    this.#sentBytes += delta.byteLength;
    const { connection, invocationId } = this.#options;
    const params = { invocation_id: invocationId, ...delta.members };
    return connection.notify(ToolsProgress, params, delta.raw);
  }

  #hasRoom(byteLength: number): boolean {
    const underWay = this.#sentBytes - this.#acknowledgedBytes;
    return underWay <= 0 || underWay + byteLength <= this.#options.windowBytes;
  }

  /** False when a cancelled call got no room in time; its text is then given up. */
  async #waitForRoom(byteLength: number): Promise<boolean> {
    const { signal } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const startTimer = () => {
      timer = setTimeout(() => this.giveUp(), CANCEL_WAIT_MS);
    };
    if (signal.aborted) startTimer();
    else signal.addEventListener("abort", startTimer, { once: true });
    while (!this.#gaveUp && !this.#hasRoom(byteLength)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    clearTimeout(timer);
    signal.removeEventListener("abort", startTimer);
    this.#wake = undefined;
    return !this.#gaveUp;
  }
}

/** A delta that is given up settles while the stream may still hold an earlier one, whose bytes must not change. */
async function settled(sent: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(sent);
  await Promise.all(sent);
}

/** What an author without a type checker gave that nothing could be sent of. */
function problemOf(progress: unknown): string | undefined {
  const expected = "expected {output, message, display}";
  if (typeof progress !== "object" || progress === null || Array.isArray(progress)) {
    return `no object; ${expected}`;
  }
  const unknown = Object.keys(progress).find((n) => !["output", "message", "display"].includes(n));
  if (unknown !== undefined) return `an unknown member ${unknown}; ${expected}`;
  const { output, message, display } = progress as ProgressDelta;
  if (![message, display].every((text) => text === undefined || typeof text === "string")) {
    return "a message or display that is no text";
  }
  if (output === undefined || typeof output === "string" || output instanceof Uint8Array) {
    return undefined;
  }
  const isChunks =
    Array.isArray(output) &&
    output.every((chunk: { text?: unknown; bytes?: unknown } | null) =>
      typeof chunk?.text === "string"
        ? chunk.bytes === undefined
        : chunk?.bytes instanceof Uint8Array,
    );
  return isChunks
    ? undefined
    : "an output that is neither text nor bytes nor a list of {stream, text} or {stream, bytes}";
}
