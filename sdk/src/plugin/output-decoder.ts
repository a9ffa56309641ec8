import { StringDecoder } from "node:string_decoder";
import type { OutputPiece } from "./output-piece.ts";

/** Makes text of bytes, for a kernel that takes no raw ones: a decoder for each stream of one call (E-101). */
export class OutputDecoder {
  readonly #decoders = new Map<string | undefined, StringDecoder>();

  decode(pieces: readonly OutputPiece[]): OutputPiece[] {
    return pieces.map(({ stream, data }) => {
      const decoder = this.#decoders.get(stream) ?? new StringDecoder("utf8");
      this.#decoders.set(stream, decoder);
      const text = typeof data === "string" ? decoder.end() + data : decoder.write(data);
      return { stream, data: text };
    });
  }

  /** Characters that were cut short. */
  end(): OutputPiece[] {
    return [...this.#decoders].map(([stream, decoder]) => ({ stream, data: decoder.end() }));
  }
}
