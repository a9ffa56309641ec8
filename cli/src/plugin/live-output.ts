import { StringDecoder } from "node:string_decoder";
import { printableLines } from "../printable.ts";

/** What takes no longer is shown as the result only. */
const HOLD_MS = 100;

/** Shows the output of a running call as it comes; what comes together with the result is left to the result. */
export class LiveOutput {
  readonly #out: NodeJS.WritableStream;
  readonly #decoders = new Map<string | null, StringDecoder>();
  /** Null once output is shown as it comes. */
  #held: string | null = "";
  #timer: NodeJS.Timeout | undefined;
  #atLineStart = true;

  constructor(out: NodeJS.WritableStream) {
    this.#out = out;
  }

  /** @param data Base64. */
  take(stream: string | null, data: string): void {
    const decoder = this.#decoders.get(stream) ?? new StringDecoder("utf8");
    this.#decoders.set(stream, decoder);
    const text = printableLines(decoder.write(Buffer.from(data, "base64")));
    this.#timer ??= setTimeout(() => this.#flush(), HOLD_MS);
    if (this.#held === null) this.#write(text);
    else this.#held += text;
  }

  /** The result comes now. */
  end(): void {
    clearTimeout(this.#timer);
    this.#held = null;
    if (!this.#atLineStart) this.#out.write("\n");
    this.#atLineStart = true;
  }

  #flush(): void {
    if (this.#held !== null) this.#write(this.#held);
    this.#held = null;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#out.write(text);
    this.#atLineStart = text.endsWith("\n");
  }
}
