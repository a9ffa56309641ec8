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
  #bytes: Uint8Array;
  #byteLength: number;

  /** The bytes are looked at and not copied until more come. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#byteLength = bytes.byteLength;
  }

  get all(): Uint8Array {
    return this.#bytes.subarray(0, this.#byteLength);
  }

  append(more: Uint8Array): void {
    const byteLength = this.#byteLength + more.byteLength;
    if (byteLength > this.#bytes.byteLength) {
      const grown = new Uint8Array(2 * byteLength);
      grown.set(this.all);
      this.#bytes = grown;
    }
    this.#bytes.set(more, this.#byteLength);
    this.#byteLength = byteLength;
  }
}
