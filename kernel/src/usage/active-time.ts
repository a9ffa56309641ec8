export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Spans of time, counted once where they overlap. Adding one again changes nothing. */
export class ActiveTime {
  readonly #spans: Span[] = [];
  #totalMs = 0;
  #changes = 0;

  /** Apart from each other, oldest first. */
  get spans(): readonly Span[] {
    return this.#spans;
  }

  /** Grows with every span that is added. */
  get changes(): number {
    return this.#changes;
  }

  add(fromMs: number, toMs: number): void {
    if (!(toMs > fromMs)) return;
    this.#changes += 1;
    const spans = this.#spans;
    const first = this.#firstEndingFrom(fromMs);
    let last = first;
    let from = fromMs;
    let to = toMs;
    for (; last < spans.length; last += 1) {
      const span = spans[last];
      if (span === undefined || span.fromMs > to) break;
      from = Math.min(from, span.fromMs);
      to = Math.max(to, span.toMs);
      this.#totalMs -= span.toMs - span.fromMs;
    }
    spans.splice(first, last - first, { fromMs: from, toMs: to });
    this.#totalMs += to - from;
  }

  /** With a span that has not ended by `nowMs`; null: everything has. */
  totalMs(openSinceMs: number | null, nowMs: number): number {
    if (openSinceMs === null || nowMs <= openSinceMs) return this.#totalMs;
    let overlapMs = 0;
    for (let at = this.#spans.length - 1; at >= 0; at -= 1) {
      const span = this.#spans[at];
      if (span === undefined || span.toMs <= openSinceMs) break;
      overlapMs += span.toMs - Math.max(span.fromMs, openSinceMs);
    }
    const newestMs = Math.max(nowMs, this.#spans.at(-1)?.toMs ?? nowMs);
    return this.#totalMs - overlapMs + newestMs - openSinceMs;
  }

  #firstEndingFrom(timeMs: number): number {
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#spans[middle]?.toMs ?? 0) < timeMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
