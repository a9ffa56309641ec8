import { StringDecoder } from "node:string_decoder";
import type { OutputPiece } from "./output-piece.ts";

/** Makes text of bytes, for a kernel that takes no raw ones: a decoder for each stream of one call (E-101). */
export class OutputDecoder {
  readonly #decoders = new Map<string | undefined, StringDecoder>();

  /** Neighbours of one stream become one piece: a delta holds few chunks. */
  decode(pieces: readonly OutputPiece[]): OutputPiece[] {
    const decoded: { stream: string | undefined; data: string }[] = [];
    for (const { stream, data } of pieces) {
      const decoder = this.#decoders.get(stream) ?? new StringDecoder("utf8");
      this.#decoders.set(stream, decoder);
      const text = typeof data === "string" ? decoder.end() + data : decoder.write(data);
      const last = decoded.at(-1);
      if (last !== undefined && last.stream === stream) last.data += text;
      else decoded.push({ stream, data: text });
    }
    return decoded;
  }

  /** Characters that were cut short. */
  end(): OutputPiece[] {
    return [...this.#decoders].map(([stream, decoder]) => ({ stream, data: decoder.end() }));
  }
}
