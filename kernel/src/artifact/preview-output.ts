import { cutUtf8 } from "../support/safe-text.ts";
import { EscapeStripper } from "./escape-stripper.ts";

export interface PreviewLimits {
  readonly maxLines: number;
  readonly maxBytes: number;
}

/** The beginning of one stream as the model sees it, and where the stored text goes on. */
export interface Preview {
  readonly text: string;
  /** Whole lines in it, the zero-based line to go on with. */
  readonly nextOffset: number;
  /** Bytes of that line already in it; 0 at a line's start and in a line that is not shown as stored. */
  readonly nextByte: number;
  /** Bytes of the stored text before `nextOffset` and `nextByte`. */
  readonly coveredBytes: number;
}

/**
 * Builds the preview of a stream that arrives in pieces: the longest beginning within the limits, cut at a
 * character (T-134, T-137). `terminal` form shows the last state of lines overwritten by a lone carriage return and
 * leaves escape codes out (T-192); `exact` form is a prefix. Memory is bounded by `maxBytes`, whatever arrives.
 */
export class PreviewBuilder {
  readonly #limits: PreviewLimits;
  readonly #escapes: EscapeStripper | undefined;
  #shown = "";
  #shownBytes = 0;
  #lines = 0;
  #coveredBytes = 0;
  #line = startLine();
  #closed = false;

  constructor(limits: PreviewLimits, form: "exact" | "terminal") {
    this.#limits = limits;
    this.#escapes = form === "terminal" ? new EscapeStripper() : undefined;
  }

  /** Takes whole characters. */
  write(bytes: Uint8Array): void {
    if (!this.#closed) this.#writeText(decodeUtf8(bytes));
  }

  #writeText(text: string): void {
    let start = 0;
    while (start < text.length && !this.#closed) {
      const newline = text.indexOf("\n", start);
      const end = newline < 0 ? text.length : newline;
      if (end > start) this.#extend(text.slice(start, end));
      if (newline >= 0 && !this.#closed) this.#endLine();
      start = end + 1;
    }
  }

  finish(): Preview {
    const line = this.#line;
    const lineBytes = line.cut || this.#closed ? line.shownAs : line.storedBytes;
    return {
      text: this.#shown + line.text,
      nextOffset: this.#lines,
      nextByte: lineBytes,
      coveredBytes: this.#coveredBytes + lineBytes,
    };
  }

  #extend(piece: string): void {
    const line = this.#line;
    line.storedBytes += Buffer.byteLength(piece, "utf8");
    if (this.#escapes === undefined) {
      this.#append(piece);
      this.#closed = line.cut;
      return;
    }
    const visible = this.#escapes.strip(piece);
    if (visible.length !== piece.length && !line.cut) line.altered = true;
    const content = withoutTrailingReturns(visible);
    if (content !== "") {
      const overwritten = content.lastIndexOf("\r");
      if (overwritten >= 0 || line.returned) restartLine(line);
      this.#append(content.slice(overwritten + 1));
    }
    line.returned = content.length < visible.length || (line.returned && content === "");
  }

  #append(run: string): void {
    const line = this.#line;
    if (line.cut) return;
    const room = this.#limits.maxBytes - this.#shownBytes - line.textBytes;
    // Every UTF-16 unit takes at least one byte, so what lies beyond `room` units cannot fit.
    const kept = cutUtf8(run.slice(0, room + 1), room);
    line.text += kept;
    line.textBytes += Buffer.byteLength(kept, "utf8");
    line.cut = kept.length < run.length;
    line.shownAs = line.altered ? 0 : line.textBytes;
  }

  #endLine(): void {
    const line = this.#line;
    const ending = line.returned ? "\r\n" : "\n";
    if (line.cut || this.#shownBytes + line.textBytes + ending.length > this.#limits.maxBytes) {
      line.shownAs = line.altered ? 0 : line.textBytes;
      this.#closed = true;
      return;
    }
    this.#shown += line.text + ending;
    this.#shownBytes += line.textBytes + ending.length;
    this.#coveredBytes += line.storedBytes + 1;
    this.#lines += 1;
    this.#line = startLine();
    this.#escapes?.reset();
    this.#closed = this.#lines === this.#limits.maxLines;
  }
}

/** The line being built. */
interface OpenLine {
  text: string;
  textBytes: number;
  storedBytes: number;
  /** Stored bytes that `text` stands for when the line is shown in part. */
  shownAs: number;
  /** `text` is not a prefix of the stored line. */
  altered: boolean;
  /** More was to be shown than fits. */
  cut: boolean;
  /** The last thing was a carriage return: a newline makes it a line ending, anything else overwrites the line. */
  returned: boolean;
}

function startLine(): OpenLine {
  return {
    text: "",
    textBytes: 0,
    storedBytes: 0,
    shownAs: 0,
    altered: false,
    cut: false,
    returned: false,
  };
}

function decodeUtf8({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

function withoutTrailingReturns(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === 0x0d) end -= 1;
  return text.slice(0, end);
}

function restartLine(line: OpenLine): void {
  line.text = "";
  line.textBytes = 0;
  line.altered = true;
  line.cut = false;
}
