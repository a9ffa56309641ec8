import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { cutUtf8 } from "../support/safe-text.ts";

const MAX_LINE_BYTES = 8 * 1024;
const LINES_PER_SECOND = 200;
const TAIL_LINES = 12;

export interface StderrLogOptions {
  readonly input: Readable;
  write(line: string): void;
  /** Milliseconds that only grow. */
  now?(): number;
}

/** Copies a plugin's stderr line by line: cut, escaped, at most 200 lines per second, the rest counted (E-010). */
export class StderrLog {
  readonly #options: StderrLogOptions;
  readonly #decoder = new StringDecoder("utf8");
  readonly #tail: string[] = [];
  #line = "";
  #lineBytes = 0;
  #windowStart = Number.NEGATIVE_INFINITY;
  #written = 0;
  #suppressed = 0;
  #report: NodeJS.Timeout | undefined;

  constructor(options: StderrLogOptions) {
    this.#options = options;
    options.input.on("data", (chunk: Buffer) => this.#take(this.#decoder.write(chunk)));
    options.input.on("error", () => undefined);
    options.input.once("close", () => this.#finish());
  }

  /** The last lines, for the error of a crash. */
  get tail(): readonly string[] {
    return this.#lineBytes > 0 ? [...this.#tail, escapeControls(this.#line)] : this.#tail;
  }

  #take(text: string): void {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#append(text.slice(start, end));
      this.#endLine();
      start = end + 1;
    }
    this.#append(text.slice(start));
  }

  /** What is beyond the limit is dropped at once, so a line without end is not kept. */
  #append(part: string): void {
    if (this.#lineBytes >= MAX_LINE_BYTES || part === "") return;
    const room = MAX_LINE_BYTES - this.#lineBytes;
    const candidate = part.slice(0, room);
    this.#lineBytes += Buffer.byteLength(candidate);
    this.#line += cutUtf8(candidate, room);
  }

  #endLine(): void {
    const line = escapeControls(this.#line.replace(/\r$/, ""));
    this.#line = "";
    this.#lineBytes = 0;
    if (line === "") return;
    this.#tail.push(line);
    if (this.#tail.length > TAIL_LINES) this.#tail.shift();
    this.#write(line);
  }

  #write(line: string): void {
    const now = (this.#options.now ?? performance.now.bind(performance))();
    if (now - this.#windowStart >= 1000) {
      this.#windowStart = now;
      this.#written = 0;
    }
    if (this.#written < LINES_PER_SECOND) {
      this.#written += 1;
      this.#options.write(line);
      return;
    }
    this.#suppressed += 1;
    this.#report ??= setTimeout(() => this.#reportSuppressed(), 1000).unref();
  }

  #reportSuppressed(): void {
    clearTimeout(this.#report);
    this.#report = undefined;
    if (this.#suppressed === 0) return;
    this.#options.write(`${this.#suppressed} more lines were not copied`);
    this.#suppressed = 0;
  }

  #finish(): void {
    this.#take(this.#decoder.end());
    this.#endLine();
    this.#reportSuppressed();
  }
}

function escapeControls(line: string): string {
  return line.replace(/(?!\t)\p{Cc}/gu, (control) => {
    const code = control.codePointAt(0) ?? 0;
    return `\\x${code.toString(16).padStart(2, "0")}`;
  });
}
