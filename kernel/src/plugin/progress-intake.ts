import {
  CookieError,
  isCookieError,
  type OutputDeclaration,
  PROGRESS_LIMITS,
  type ToolProgress,
  utf8Length,
} from "@cookie-agent/sdk/protocol";
import { createDeferred, type Deferred } from "../support/deferred.ts";
import { cutUtf8 } from "../support/safe-text.ts";
import { type OutputPiece, type ProgressNews, piecesOf } from "./progress-news.ts";
import { WaitingOutput } from "./waiting-output.ts";

export interface ProgressIntakeOptions {
  /** Null: the tool cannot stream. */
  readonly output: OutputDeclaration | null;
  /** Unacknowledged bytes of output that end the call; null: the plugin's own pipe is throttled instead (E-103). */
  readonly windowBytes: number | null;
  readonly ackBytes: number;
  /** Stores what came; resolves when it is stored. */
  capture(news: ProgressNews): Promise<unknown>;
  acknowledge(bytes: number): void;
  /** Ends the call; told once. */
  fail(error: CookieError): void;
}

interface Batch {
  readonly output: WaitingOutput;
  readonly presentation: Presentation;
  /** How many deltas were merged into this one. */
  count: number;
  byteLength: number;
  readonly stored: Deferred<void>;
}

type Presentation = Omit<ProgressNews, "output">;

/** What waits as one is looked through piece by piece. */
const MAX_PIECES = 64;

/**
 * The progress of one running call: checks each delta (E-100, E-102), stores them one after the other and acknowledges
 * them (E-103). Output that waits is merged, so what waits is bounded by its text.
 */
export class ProgressIntake {
  readonly #options: ProgressIntakeOptions;
  readonly #waiting: Batch[] = [];
  #storing: Promise<void> | undefined;
  #closed = false;
  #received = 0;
  #acknowledged = 0;
  #captured = 0;
  #presented = 0;
  #discarded = 0;
  #streamed = false;

  constructor(options: ProgressIntakeOptions) {
    this.#options = options;
  }

  /** True once a delta with output was accepted. */
  get streamed(): boolean {
    return this.#streamed;
  }

  /** Deltas that came and were not stored (T 1.11). */
  get discarded(): number {
    return this.#discarded;
  }

  /** True when a delta would be dropped. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Takes a delta and the raw bytes behind it. Resolves when it is stored; the caller lets the pipe wait for it or not.
   */
  accept(delta: ToolProgress, raw: readonly Uint8Array[] = []): Promise<void> | undefined {
    if (this.#closed) {
      this.#discarded += 1;
      return undefined;
    }
    const textBytes = textBytesOf(delta);
    const rawBytes = raw.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const error = this.#problemOf(delta, textBytes, rawBytes);
    if (error !== undefined) {
      this.#discarded += 1;
      this.#fail(error);
      return undefined;
    }
    const byteLength = textBytes + rawBytes;
    this.#received += byteLength;
    if (delta.output !== undefined && delta.output.length > 0) this.#streamed = true;
    return this.#enqueue(piecesOf(delta, raw), this.#boundPresentation(delta), byteLength);
  }

  /** Nothing is accepted any more; resolves when what was accepted is stored (E-008). */
  async finish(): Promise<void> {
    this.#closed = true;
    await this.#storing;
  }

  #problemOf(delta: ToolProgress, textBytes: number, rawBytes: number): CookieError | undefined {
    const declared = (delta.output ?? []).reduce((sum, { byte_length: n = 0 }) => sum + n, 0);
    if (declared !== rawBytes) {
      const problem = `a progress delta shares out ${declared} raw bytes and brings ${rawBytes}`;
      return new CookieError("protocol_violation", problem);
    }
    const limit = this.#limitBroken(delta, textBytes, rawBytes);
    return limit === undefined ? undefined : new CookieError("progress_limit", limit);
  }

  #limitBroken(delta: ToolProgress, textBytes: number, rawBytes: number): string | undefined {
    const chunks = delta.output ?? [];
    if (chunks.length > PROGRESS_LIMITS.chunks) {
      return `a progress delta may hold ${PROGRESS_LIMITS.chunks} chunks`;
    }
    if (textBytes > PROGRESS_LIMITS.textBytes) {
      return `a progress delta may hold ${PROGRESS_LIMITS.textBytes} bytes of text`;
    }
    if (rawBytes > PROGRESS_LIMITS.rawBytes) {
      return `a progress delta may hold ${PROGRESS_LIMITS.rawBytes} raw bytes`;
    }
    for (const text of [delta.message, delta.display]) {
      if (utf8Length(text ?? "") > PROGRESS_LIMITS.presentationBytes) {
        return `a message or display may hold ${PROGRESS_LIMITS.presentationBytes} bytes`;
      }
    }
    const { output, windowBytes } = this.#options;
    if (chunks.length > 0 && output === null) return "a tool with opt_out cannot stream its output";
    for (const { stream } of chunks) {
      const declared =
        output?.mode === "named"
          ? stream !== undefined && output.streams.includes(stream)
          : stream === undefined;
      if (!declared) return `the stream ${stream ?? "without a name"} is not declared`;
    }
    const underWay = this.#received + textBytes + rawBytes - this.#acknowledged;
    if (windowBytes !== null && underWay > windowBytes) {
      return `more than ${windowBytes} bytes of progress are unacknowledged`;
    }
    return undefined;
  }

  #boundPresentation({ message, display }: ToolProgress): Presentation {
    const bound = (text: string | undefined): string | undefined => {
      if (text === undefined) return undefined;
      const cut = cutUtf8(text, PROGRESS_LIMITS.totalPresentationBytes - this.#presented);
      this.#presented += utf8Length(cut);
      return cut === "" ? undefined : cut;
    };
    return { message: bound(message), display: bound(display) };
  }

  #enqueue(
    pieces: readonly OutputPiece[],
    presentation: Presentation,
    byteLength: number,
  ): Promise<void> {
    const last = this.#waiting.at(-1);
    if (last !== undefined && joins(last, pieces, presentation, byteLength)) {
      last.byteLength += byteLength;
      last.count += 1;
      return last.stored.promise;
    }
    const output = new WaitingOutput(pieces);
    const batch = { output, presentation, byteLength, count: 1, stored: createDeferred<void>() };
    this.#waiting.push(batch);
    this.#storing ??= this.#store();
    return batch.stored.promise;
  }

  async #store(): Promise<void> {
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      try {
        await this.#options.capture({ output: batch.output.pieces, ...batch.presentation });
        this.#captured += batch.byteLength;
        this.#acknowledge();
      } catch (error) {
        this.#discarded += batch.count;
        this.#fail(
          isCookieError(error)
            ? error
            : new CookieError("execution_failed", "the output could not be stored", {
                cause: error,
              }),
        );
      }
      batch.stored.resolve();
    }
    // In the same turn as the last look at the queue, or a delta in between would wait for ever.
    this.#storing = undefined;
  }

  #acknowledge(): void {
    if (this.#captured - this.#acknowledged < this.#options.ackBytes) return;
    this.#acknowledged = this.#captured;
    this.#options.acknowledge(this.#captured);
  }

  #fail(error: CookieError): void {
    const first = !this.#closed;
    this.#closed = true;
    for (const { stored, count } of this.#waiting.splice(0)) {
      this.#discarded += count;
      stored.resolve();
    }
    if (first) this.#options.fail(error);
  }
}

function textBytesOf({ output = [] }: ToolProgress): number {
  return output.reduce((sum, { text = "" }) => sum + utf8Length(text), 0);
}

/** Adds output to what waits already; false when they must stay apart. */
function joins(
  waiting: Batch,
  pieces: readonly OutputPiece[],
  news: Presentation,
  byteLength: number,
): boolean {
  if (isShown(news) || isShown(waiting.presentation)) return false;
  if (waiting.byteLength + byteLength > PROGRESS_LIMITS.textBytes) return false;
  return waiting.output.add(pieces, MAX_PIECES);
}

function isShown({ message, display }: Presentation): boolean {
  return message !== undefined || display !== undefined;
}
