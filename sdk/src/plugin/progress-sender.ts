import { CookieError } from "../protocol/errors.ts";
import { PROGRESS_LIMITS, ToolsProgress } from "../protocol/host-methods.ts";
import type { ParamsInput } from "../protocol/method.ts";
import type { Connection } from "../rpc/connection.ts";
import { cutText } from "../rpc/safe-message.ts";
import type { ProgressDelta } from "./tool-invocation.ts";

type Delta = ParamsInput<typeof ToolsProgress>;
type Chunk = NonNullable<Delta["output"]>[number];

/** How long text may still wait for room after its call was cancelled. */
const CANCEL_WAIT_MS = 2000;

export interface ProgressSenderOptions {
  readonly connection: Connection;
  readonly invocationId: string;
  readonly signal: AbortSignal;
  /** Text bytes that may be under way without acknowledgement (E-103). */
  readonly windowBytes: number;
}

/** Sends the output of one call in order, in deltas the kernel accepts (E-100), inside the window (E-103). */
export class ProgressSender {
  readonly #options: ProgressSenderOptions;
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
  }

  get sentText(): boolean {
    return this.#sentBytes > 0;
  }

  /** Resolves when the stream took all of it. After the call has ended nothing is sent any more. */
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
    let sent: Promise<void> = Promise.resolve();
    for (const delta of splitDelta(progress)) {
      sent = this.#enqueue(delta);
      // A tool may not await this; the failure then ends the call instead of the process.
      sent.catch((error: unknown) => {
        this.#failure ??= error as Error;
      });
    }
    return sent;
  }

  /** The kernel's cumulative count of captured text bytes. */
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
    return connection.notify(ToolsProgress, { invocation_id: invocationId, ...delta.members });
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
  if (output === undefined || typeof output === "string") return undefined;
  const isChunks =
    Array.isArray(output) &&
    output.every((chunk: Partial<Chunk> | null) => typeof chunk?.text === "string");
  return isChunks ? undefined : "an output that is neither text nor a list of {stream, text}";
}

interface SplitDelta {
  readonly byteLength: number;
  readonly members: Omit<Delta, "invocation_id">;
}

/** Deltas of at most 8 chunks and 64 KiB of text, none of which ends inside a character (E-100, E-101). */
export function splitDelta(progress: ProgressDelta): SplitDelta[] {
  const deltas: SplitDelta[] = [];
  let chunks: Chunk[] = [];
  let byteLength = 0;
  let news: Omit<Delta, "invocation_id" | "output"> = {
    ...(progress.message === undefined ? {} : { message: cutNews(progress.message) }),
    ...(progress.display === undefined ? {} : { display: cutNews(progress.display) }),
  };
  const finishDelta = () => {
    const output = chunks.length === 0 ? {} : { output: chunks };
    deltas.push({ byteLength, members: { ...news, ...output } });
    chunks = [];
    byteLength = 0;
    news = {};
  };
  for (const chunk of toChunks(progress.output)) {
    for (const text of splitText(chunk.text)) {
      const textBytes = Buffer.byteLength(text);
      const full = chunks.length === PROGRESS_LIMITS.chunks;
      if (full || byteLength + textBytes > PROGRESS_LIMITS.textBytes) finishDelta();
      chunks.push({ ...chunk, text });
      byteLength += textBytes;
    }
  }
  if (chunks.length > 0 || Object.keys(news).length > 0) finishDelta();
  return deltas;
}

function toChunks(output: ProgressDelta["output"]): readonly Chunk[] {
  if (output === undefined) return [];
  return typeof output === "string" ? [{ text: output }] : output;
}

function splitText(text: string): string[] {
  if (text === "") return [];
  if (Buffer.byteLength(text) <= PROGRESS_LIMITS.textBytes) return [text];
  const pieces: string[] = [];
  const bytes = Buffer.from(text, "utf8");
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + PROGRESS_LIMITS.textBytes, bytes.length);
    while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    pieces.push(bytes.toString("utf8", start, end));
    start = end;
  }
  return pieces;
}

function cutNews(text: string): string {
  return cutText(text, PROGRESS_LIMITS.presentationBytes);
}
