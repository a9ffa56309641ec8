import { isUtf8 } from "node:buffer";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { nameEncoding, nameWideEncoding } from "./name-encoding.ts";
import { Utf8Check, wholeCharacters } from "./utf8-check.ts";

export const BOM: Buffer = Buffer.from([0xef, 0xbb, 0xbf]);

const SAMPLE_BYTES = 64 * 1024;
const EMPTY = Buffer.alloc(0);

/** Decides from a file's bytes, piece by piece, whether it is UTF-8 text and what else it may be. */
export class TextScan {
  readonly #check = new Utf8Check();
  #head: Buffer | undefined;
  #strange: Buffer = EMPTY;

  /** Takes the next piece without keeping it; false once the file cannot be UTF-8. */
  push(chunk: Buffer): boolean {
    this.#head ??= Buffer.from(chunk.subarray(0, SAMPLE_BYTES));
    if (!this.#check.valid) return false;
    this.#check.push(chunk);
    if (!this.#check.valid) this.#strange = Buffer.from(chunk.subarray(0, SAMPLE_BYTES));
    return this.#check.valid;
  }

  /** The first bytes, empty for an empty file. */
  get head(): Buffer {
    return this.#head ?? EMPTY;
  }

  get hasBom(): boolean {
    return this.head.subarray(0, BOM.length).equals(BOM);
  }

  /** Fails with `reason: encoding`, naming the encoding as far as it can be told, unless the whole was UTF-8. */
  expectUtf8(path: string): void {
    const encoding = this.#check.end() ? nameWideEncoding(this.head) : nameEncoding(this.#sample());
    if (encoding === undefined) return;
    const what = encoding === "binary" ? "is a binary file" : `looks like ${encoding}`;
    throw new ToolError("execution_failed", `${path} is not UTF-8 text: it ${what}`, {
      data: { reason: "encoding" },
    });
  }

  /** The head, unless the strange bytes come only later. */
  #sample(): Buffer {
    const { head } = this;
    const headIsText = isUtf8(head.subarray(0, wholeCharacters(head)));
    return headIsText && this.#strange.length > 0 ? this.#strange : head;
  }
}
