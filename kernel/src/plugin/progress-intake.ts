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

export interface ProgressIntakeOptions {
  /** Null: the tool cannot stream. */
  readonly output: OutputDeclaration | null;
  /** Unacknowledged text bytes that end the call; null: the plugin's own pipe is throttled instead (E-103). */
  readonly windowBytes: number | null;
  readonly ackBytes: number;
  /** Stores one delta, resolves with the cumulative captured bytes. */
  capture(delta: ToolProgress): Promise<number>;
  acknowledge(bytes: number): void;
  /** Ends the call; told once. */
  fail(error: CookieError): void;
}

interface Batch {
  delta: ToolProgress;
  /** How many deltas were merged into this one. */
  count: number;
  byteLength: number;
  readonly stored: Deferred<void>;
}

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

  /** Resolves when the delta is stored; the caller lets the pipe wait for it or not. */
  accept(delta: ToolProgress): Promise<void> | undefined {
    if (this.#closed) {
      this.#discarded += 1;
      return undefined;
    }
    const byteLength = textBytes(delta);
    const problem = this.#problemOf(delta, byteLength);
    if (problem !== undefined) {
      this.#discarded += 1;
      this.#fail(new CookieError("progress_limit", problem));
      return undefined;
    }
    this.#received += byteLength;
    if (delta.output !== undefined && delta.output.length > 0) this.#streamed = true;
    return this.#enqueue(this.#boundPresentation(delta), byteLength);
  }

  /** Nothing is accepted any more; resolves when what was accepted is stored (E-008). */
  async finish(): Promise<void> {
    this.#closed = true;
    await this.#storing;
  }

  #problemOf(delta: ToolProgress, byteLength: number): string | undefined {
    const chunks = delta.output ?? [];
    if (chunks.length > PROGRESS_LIMITS.chunks) {
      return `a progress delta may hold ${PROGRESS_LIMITS.chunks} chunks`;
    }
    if (byteLength > PROGRESS_LIMITS.textBytes) {
      return `a progress delta may hold ${PROGRESS_LIMITS.textBytes} bytes of text`;
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
    if (windowBytes !== null && this.#received + byteLength - this.#acknowledged > windowBytes) {
      return `more than ${windowBytes} bytes of progress are unacknowledged`;
    }
    return undefined;
  }

  #boundPresentation(delta: ToolProgress): ToolProgress {
    if (delta.message === undefined && delta.display === undefined) return delta;
    const { message, display, ...rest } = delta;
    const bound = (text: string | undefined): string | undefined => {
      const cut = cutUtf8(text ?? "", PROGRESS_LIMITS.totalPresentationBytes - this.#presented);
      this.#presented += utf8Length(cut);
      return cut === "" ? undefined : cut;
    };
    const shownMessage = bound(message);
    const shownDisplay = bound(display);
    return {
      ...rest,
      ...(shownMessage === undefined ? {} : { message: shownMessage }),
      ...(shownDisplay === undefined ? {} : { display: shownDisplay }),
    };
  }

  #enqueue(delta: ToolProgress, byteLength: number): Promise<void> {
    const last = this.#waiting.at(-1);
    const merged = last === undefined ? undefined : mergeOutput(last, delta, byteLength);
    if (last !== undefined && merged !== undefined) {
      last.delta = merged;
      last.byteLength += byteLength;
      last.count += 1;
      return last.stored.promise;
    }
    const batch: Batch = { delta, byteLength, count: 1, stored: createDeferred() };
    this.#waiting.push(batch);
    this.#storing ??= this.#store();
    return batch.stored.promise;
  }

  async #store(): Promise<void> {
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      try {
        this.#captured = await this.#options.capture(batch.delta);
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

function textBytes(delta: ToolProgress): number {
  let bytes = 0;
  for (const { text } of delta.output ?? []) bytes += utf8Length(text);
  return bytes;
}

/** Both as one delta, or undefined when they must stay apart. */
function mergeOutput(
  before: Batch,
  delta: ToolProgress,
  byteLength: number,
): ToolProgress | undefined {
  if (delta.message !== undefined || delta.display !== undefined) return undefined;
  if (before.delta.message !== undefined || before.delta.display !== undefined) return undefined;
  if (before.byteLength + byteLength > PROGRESS_LIMITS.textBytes) return undefined;
  const chunks = [...(before.delta.output ?? [])];
  for (const chunk of delta.output ?? []) {
    const last = chunks.at(-1);
    if (last !== undefined && last.stream === chunk.stream) {
      chunks[chunks.length - 1] = { ...last, text: last.text + chunk.text };
    } else {
      chunks.push(chunk);
    }
  }
  return chunks.length > PROGRESS_LIMITS.chunks ? undefined : { ...before.delta, output: chunks };
}
