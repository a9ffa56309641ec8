import type { EncodedEvent } from "./encode-event.ts";
import type { LineContext } from "./line-context.ts";

const STRIDE = 16;

export interface IndexEntry {
  readonly seq: number;
  readonly startByte: number;
  /** What a reader knows from the lines before. */
  readonly before: LineContext;
}

/** Where every 16th event begins, so that a page near the end does not read the log from its start. */
export class SeqIndex {
  readonly #entries: IndexEntry[] = [];
  #sinceEntry = 0;

  note(place: IndexEntry): void {
    if (this.#sinceEntry % STRIDE === 0) this.#entries.push(place);
    this.#sinceEntry += 1;
  }

  /** Notes lines that follow each other from `startByte` on; yields where they end. */
  noteLines(lines: readonly EncodedEvent[], startByte: number): number {
    let at = startByte;
    for (const { event, before, bytes } of lines) {
      this.note({ seq: event.seq, startByte: at, before });
      at += bytes.byteLength;
    }
    return at;
  }

  /** The last known place at or before the first event after `cursor`; undefined for an empty log. */
  placeBefore(cursor: number): IndexEntry | undefined {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle]?.seq ?? 0) <= cursor + 1) low = middle + 1;
      else high = middle;
    }
    return this.#entries[low - 1] ?? this.#entries[0];
  }
}
