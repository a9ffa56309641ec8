/** A turn may have as many characters; nothing in an honest stream of one comes near. */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;
const BLANK_LINES = ["\n\n", "\r\n\r\n", "\r\r"];
/** All but the last byte of the longest blank line. */
const TAIL_BYTES = 3;

/** Tells when an event of a stream goes on without end, which whoever parses it would keep whole in memory. */
export class EventBound {
  #tail = Buffer.alloc(0);
  #byteLength = 0;

  /** True once the event that `piece` belongs to has become longer than 8 MiB. */
  isExceededBy(piece: Uint8Array): boolean {
    const bytes = Buffer.concat([this.#tail, piece]);
    const end = Math.max(...BLANK_LINES.map((blankLine) => bytes.lastIndexOf(blankLine)));
    this.#byteLength = end < 0 ? this.#byteLength + piece.byteLength : bytes.byteLength - end;
    this.#tail = bytes.subarray(-TAIL_BYTES);
    return this.#byteLength > MAX_EVENT_BYTES;
  }
}
