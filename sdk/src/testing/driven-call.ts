import { checkValue } from "../protocol/check-value.ts";
import { ToolsProgress } from "../protocol/host-methods.ts";
import { PROGRESS_LIMITS } from "../protocol/limits.ts";
import { type JsonObject, utf8Length } from "../protocol/scalars.ts";
import type { OutputDeclaration } from "../protocol/tool.ts";

/** One piece of output as it came. */
export interface OutputPiece {
  /** Absent in single mode. */
  readonly stream?: string;
  readonly bytes: Buffer;
}

/** What a plugin said for people while it worked. */
export interface ProgressNote {
  readonly message?: string;
  readonly display?: string;
}

export interface DrivenCallOptions {
  readonly invocationId: string;
  readonly output: OutputDeclaration;
  /** False: output is counted and thrown away. */
  readonly keep: boolean;
  /** Sends `plugin/tools/progress_ack`; absent: nothing is acknowledged until `acknowledge`. */
  readonly acknowledge?: (bytes: number) => void;
  onOutput?(piece: OutputPiece): void;
}

/** The output and the news of one call, judged as they come (E-100 to E-103). */
export class DrivenCall {
  readonly invocationId: string;
  readonly output: OutputPiece[] = [];
  readonly notes: ProgressNote[] = [];
  /** Each sentence says what a delta did and what it must do. */
  readonly problems: string[] = [];
  byteLength = 0;
  acknowledgedBytes = 0;
  ended = false;
  readonly #options: DrivenCallOptions;

  constructor(options: DrivenCallOptions) {
    this.invocationId = options.invocationId;
    this.#options = options;
  }

  get declaredOutput(): OutputDeclaration {
    return this.#options.output;
  }

  /** Everything printed to one stream, decoded as a whole. */
  text(stream?: string): string {
    const parts = this.output.filter((piece) => piece.stream === stream);
    return Buffer.concat(parts.map(({ bytes }) => bytes)).toString("utf8");
  }

  take(params: JsonObject, raw: readonly Uint8Array[] | undefined): void {
    const checked = checkValue(ToolsProgress.params, params, "member");
    if (!checked.ok) {
      this.#report(
        `sent host/tools/progress with a wrong ${checked.field} (${checked.problem})`,
        "send invocation_id, output, message and display only",
      );
      return;
    }
    const { output = [], message, display } = checked.value;
    if (this.ended) {
      this.#report("sent output of a call after its answer", "send all of it before the answer");
      return;
    }
    const bytes = Buffer.concat(raw ?? []);
    this.#judgeLimits(checked.value, bytes.byteLength);
    let at = 0;
    for (const { stream, text, byte_length: length = 0 } of output) {
      this.#judgeStream(stream);
      const piece = text === undefined ? bytes.subarray(at, at + length) : Buffer.from(text);
      at += length;
      this.byteLength += piece.byteLength;
      const taken = { ...(stream === undefined ? {} : { stream }), bytes: piece };
      if (this.#options.keep) this.output.push(taken);
      this.#options.onOutput?.(taken);
    }
    if (message !== undefined || display !== undefined) {
      this.notes.push({
        ...(message === undefined ? {} : { message }),
        ...(display === undefined ? {} : { display }),
      });
    }
    if (this.#options.acknowledge !== undefined) this.acknowledge();
  }

  /** Acknowledges everything that came so far. */
  acknowledge(send = this.#options.acknowledge): void {
    this.acknowledgedBytes = this.byteLength;
    send?.(this.byteLength);
  }

  #judgeLimits(
    { output = [], message, display }: ReturnType<typeof ToolsProgress.params.parse>,
    rawBytes: number,
  ): void {
    const { chunks, textBytes, rawBytes: mostRaw, presentationBytes } = PROGRESS_LIMITS;
    if (output.length > chunks) {
      this.#report(`sent a delta of ${output.length} chunks`, `send at most ${chunks} at once`);
    }
    const text = output.reduce((sum, chunk) => sum + utf8Length(chunk.text ?? ""), 0);
    if (text > textBytes) {
      this.#report(`sent ${text} bytes of text in one delta`, `send at most ${textBytes} at once`);
    }
    if (rawBytes > mostRaw) {
      this.#report(`sent ${rawBytes} raw bytes in one delta`, `send at most ${mostRaw} at once`);
    }
    const announced = output.reduce((sum, chunk) => sum + (chunk.byte_length ?? 0), 0);
    if (announced !== rawBytes) {
      this.#report(
        `sent ${rawBytes} raw bytes and shared out ${announced}`,
        "give the chunks byte_length values that add up to raw",
      );
    }
    for (const shown of [message, display]) {
      if (shown !== undefined && utf8Length(shown) > presentationBytes) {
        this.#report(
          "sent a message or display that is too long",
          `send at most ${presentationBytes} bytes`,
        );
      }
    }
  }

  #judgeStream(stream: string | undefined): void {
    const { output } = this.#options;
    if (output.mode === "single" && stream !== undefined) {
      this.#report(`sent a chunk for the stream ${stream}`, "leave stream out: output is single");
    } else if (output.mode === "named" && !output.streams.includes(stream ?? "")) {
      this.#report(
        `sent a chunk for the stream ${stream ?? "(none)"}`,
        `name one of ${output.streams.join(", ")}`,
      );
    }
  }

  #report(did: string, must: string): void {
    if (this.problems.length < 16) this.problems.push(`${did}; ${must}`);
  }
}
