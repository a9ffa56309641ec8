interface HiddenRange {
  /** The last event before it that counts. */
  readonly throughSeq: number;
  /** The marker behind it, which counts itself. */
  readonly markerSeq: number;
}

/**
 * Which events of a log count: a revert hides those between the event that it goes back to and itself (S-061).
 * Markers are noted in the order of the log.
 */
export class VisibleBranch {
  readonly #hidden: HiddenRange[] = [];

  /** True while nothing is hidden. */
  get isWhole(): boolean {
    return this.#hidden.length === 0;
  }

  revert(throughSeq: number, markerSeq: number): void {
    const hidden = this.#hidden;
    let from = throughSeq;
    let last = hidden.at(-1);
    // Going back into or behind what is hidden already hides both as one.
    while (last !== undefined && from < last.markerSeq) {
      from = Math.min(from, last.throughSeq);
      hidden.pop();
      last = hidden.at(-1);
    }
    hidden.push({ throughSeq: from, markerSeq });
  }

  isVisible(seq: number): boolean {
    let low = 0;
    let high = this.#hidden.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#hidden[middle]?.markerSeq ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    const range = this.#hidden[low];
    return range === undefined || seq <= range.throughSeq;
  }
}
