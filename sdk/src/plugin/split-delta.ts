import type { ProgressChunk, ToolsProgress } from "../protocol/host-methods.ts";
import { PROGRESS_LIMITS } from "../protocol/limits.ts";
import type { ParamsInput } from "../protocol/method.ts";
import { cutText } from "../rpc/safe-message.ts";
import type { OutputPiece } from "./output-piece.ts";
import type { ProgressDelta } from "./tool-invocation.ts";

type Members = Omit<ParamsInput<typeof ToolsProgress>, "invocation_id">;

/** One delta as the kernel accepts it. */
export interface SplitDelta {
  /** Of text and raw bytes together; what the window counts (E-103). */
  readonly byteLength: number;
  readonly members: Members;
  /** The bytes behind the frame; absent when its chunks are text only. */
  readonly raw?: readonly Uint8Array[];
}

/** Deltas within the limits of E-100, none of whose texts ends inside a character (E-101). */
export function splitDelta(
  { message, display }: Pick<ProgressDelta, "message" | "display">,
  pieces: readonly OutputPiece[],
): SplitDelta[] {
  const splitter = new Splitter({
    ...(message === undefined ? {} : { message: cutNews(message) }),
    ...(display === undefined ? {} : { display: cutNews(display) }),
  });
  for (const { stream, data } of pieces) {
    const name = stream === undefined ? {} : { stream };
    if (typeof data === "string") for (const text of splitText(data)) splitter.addText(name, text);
    else splitter.addBytes(name, data);
  }
  return splitter.end();
}

type Name = Pick<ProgressChunk, "stream">;
type ByteChunk = ProgressChunk & { byte_length: number };

class Splitter {
  readonly #deltas: SplitDelta[] = [];
  #news: Omit<Members, "output">;
  #chunks: ProgressChunk[] = [];
  #raw: Uint8Array[] = [];
  #textBytes = 0;
  #rawBytes = 0;

  constructor(news: Omit<Members, "output">) {
    this.#news = news;
  }

  addText(name: Name, text: string): void {
    const byteLength = Buffer.byteLength(text);
    const full = this.#chunks.length === PROGRESS_LIMITS.chunks;
    if (full || this.#textBytes + byteLength > PROGRESS_LIMITS.textBytes) this.#finishDelta();
    this.#chunks.push({ ...name, text });
    this.#textBytes += byteLength;
  }

  /** Bytes may be cut anywhere: the kernel joins what belongs together. */
  addBytes(name: Name, bytes: Uint8Array): void {
    for (let start = 0; start < bytes.byteLength; ) {
      const joined = this.#joinable(name);
      const full = this.#chunks.length === PROGRESS_LIMITS.chunks && joined === undefined;
      if (full || this.#rawBytes === PROGRESS_LIMITS.rawBytes) {
        this.#finishDelta();
        continue;
      }
      const part = bytes.subarray(start, start + PROGRESS_LIMITS.rawBytes - this.#rawBytes);
      if (joined === undefined) this.#chunks.push({ ...name, byte_length: part.byteLength });
      else joined.byte_length += part.byteLength;
      this.#raw.push(part);
      this.#rawBytes += part.byteLength;
      start += part.byteLength;
    }
  }

  #joinable(name: Name): ByteChunk | undefined {
    const last = this.#chunks.at(-1);
    return last !== undefined && isBytes(last) && last.stream === name.stream ? last : undefined;
  }

  end(): SplitDelta[] {
    if (this.#chunks.length > 0 || Object.keys(this.#news).length > 0) this.#finishDelta();
    return this.#deltas;
  }

  #finishDelta(): void {
    const output = this.#chunks.length === 0 ? {} : { output: this.#chunks };
    this.#deltas.push({
      byteLength: this.#textBytes + this.#rawBytes,
      members: { ...this.#news, ...output },
      ...(this.#raw.length === 0 ? {} : { raw: this.#raw }),
    });
    this.#news = {};
    this.#chunks = [];
    this.#raw = [];
    this.#textBytes = 0;
    this.#rawBytes = 0;
  }
}

function isBytes(chunk: ProgressChunk): chunk is ByteChunk {
  return chunk.byte_length !== undefined;
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
