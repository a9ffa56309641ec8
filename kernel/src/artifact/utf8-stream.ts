import { isUtf8 } from "node:buffer";

const EMPTY = new Uint8Array(0);

/**
 * Bytes that arrive in any pieces as valid UTF-8: a character cut between pieces is joined, what is no UTF-8 becomes
 * U+FFFD, as if all of them were decoded at once (E-101). What is valid already is handed through uncopied.
 */
export class Utf8Stream {
  /** The beginning of a character, at most three bytes. */
  #held = EMPTY;

  /** All whole characters so far. */
  write(piece: Uint8Array): Uint8Array {
    const bytes = this.#held.byteLength === 0 ? piece : Buffer.concat([this.#held, piece]);
    const end = wholeLength(bytes);
    this.#held = end === bytes.byteLength ? EMPTY : Uint8Array.from(bytes.subarray(end));
    return repaired(bytes.subarray(0, end));
  }

  /** What a character that was never completed comes to. */
  end(): Uint8Array {
    const held = this.#held;
    this.#held = EMPTY;
    return repaired(held);
  }
}

function repaired(bytes: Uint8Array): Uint8Array {
  return isUtf8(bytes) ? bytes : Buffer.from(Buffer.from(bytes).toString("utf8"), "utf8");
}

/** The length without a last character that more bytes could complete; a lead byte always begins anew. */
function wholeLength(bytes: Uint8Array): number {
  const { byteLength } = bytes;
  for (let back = 1; back <= 3 && back <= byteLength; back += 1) {
    const byte = bytes[byteLength - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    return back < sequenceLength(byte) ? byteLength - back : byteLength;
  }
  return byteLength;
}

function sequenceLength(lead: number): number {
  if (lead < 0xc0 || lead > 0xf7) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}
