import type { OutputPiece } from "./progress-news.ts";

type Joined =
  | { readonly stream: string | null; text: string }
  | { readonly stream: string | null; readonly bytes: GrowingBytes };

/** Output that waits to be stored, joined so that it costs its bytes and not the number of its deltas. */
export class WaitingOutput {
  readonly #joined: Joined[];

  /** The pieces stay as they are until more come. */
  constructor(pieces: readonly OutputPiece[]) {
    this.#joined = pieces.map(toJoined);
  }

  get pieces(): OutputPiece[] {
    return this.#joined.map((joined) => ({
      stream: joined.stream,
      data: "text" in joined ? joined.text : joined.bytes.all,
    }));
  }

  /** False, and nothing has changed, when there would be too many pieces. */
  add(pieces: readonly OutputPiece[], maxPieces: number): boolean {
    if (this.#joined.length + pieces.length > maxPieces) return false;
    for (const piece of pieces) this.#append(piece);
    return true;
  }

  #append(piece: OutputPiece): void {
    const { stream, data } = piece;
    const last = this.#joined.at(-1);
    if (last === undefined || last.stream !== stream) this.#joined.push(toJoined(piece));
    else if ("text" in last && typeof data === "string") last.text += data;
    else if ("bytes" in last && typeof data !== "string") last.bytes.append(data);
    else this.#joined.push(toJoined(piece));
  }
}

function toJoined({ stream, data }: OutputPiece): Joined {
  return typeof data === "string"
    ? { stream, text: data }
    : { stream, bytes: new GrowingBytes(data) };
}

/** Bytes that take more at their end without being copied each time. */
class GrowingBytes {
  readonly #first: readonly Uint8Array[];
  #more = new Uint8Array(0);
  #moreBytes = 0;

  constructor(parts: readonly Uint8Array[]) {
    this.#first = parts;
  }

  get all(): readonly Uint8Array[] {
    if (this.#moreBytes === 0) return this.#first;
    return [...this.#first, this.#more.subarray(0, this.#moreBytes)];
  }

  append(parts: readonly Uint8Array[]): void {
    for (const part of parts) this.#appendOne(part);
  }

  #appendOne(bytes: Uint8Array): void {
    const byteLength = this.#moreBytes + bytes.byteLength;
    if (byteLength > this.#more.byteLength) {
      const grown = new Uint8Array(2 * byteLength);
      grown.set(this.#more);
      this.#more = grown;
    }
    this.#more.set(bytes, this.#moreBytes);
    this.#moreBytes = byteLength;
  }
}
