/** What is given up first when a queue is full, first to last (E-143). */
export const FEED_CLASSES = ["chunk", "ordinary", "terminal"] as const;
export type FeedClass = (typeof FEED_CLASSES)[number];

/** One notification that waits for its plugin. */
export interface FeedItem {
  readonly class: FeedClass;
  /** About what it holds in memory. */
  readonly byteLength: number;
  /** True: it takes only free room, because it is itself news of a loss. */
  readonly yields?: boolean;
}

export interface FeedBounds {
  readonly items: number;
  readonly bytes: number;
}

/** Whom an arrival may push out, in this order; itself when nobody of them is there (E-143). */
const EVICTS: Readonly<Record<FeedClass, readonly FeedClass[]>> = {
  chunk: ["chunk"],
  ordinary: ["chunk", "ordinary"],
  terminal: ["chunk", "ordinary", "terminal"],
};

/** A bounded FIFO that, when full, gives up its oldest items by class. */
export class FeedQueue<T extends FeedItem> {
  readonly #bounds: FeedBounds;
  readonly #lanes: Readonly<Record<FeedClass, { readonly order: number; readonly item: T }[]>> = {
    chunk: [],
    ordinary: [],
    terminal: [],
  };
  #arrivals = 0;
  #size = 0;
  #byteLength = 0;

  constructor(bounds: FeedBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an item at the end; returns what was given up for it, itself when there is no room. */
  push(item: T): T[] {
    const dropped: T[] = [];
    while (!this.#fits(item)) {
      const evicted = item.yields ? undefined : this.#evict(EVICTS[item.class]);
      dropped.push(evicted ?? item);
      if (evicted === undefined) return dropped;
    }
    this.#lanes[item.class].push({ order: this.#arrivals, item });
    this.#arrivals += 1;
    this.#size += 1;
    this.#byteLength += item.byteLength;
    return dropped;
  }

  /** The oldest item. */
  shift(): T | undefined {
    let oldest: FeedClass | undefined;
    let order = Number.POSITIVE_INFINITY;
    for (const lane of FEED_CLASSES) {
      const head = this.#lanes[lane][0];
      if (head === undefined || head.order > order) continue;
      oldest = lane;
      order = head.order;
    }
    return oldest === undefined ? undefined : this.#take(oldest);
  }

  clear(): void {
    while (this.shift() !== undefined);
  }

  #fits({ byteLength }: T): boolean {
    const { items, bytes } = this.#bounds;
    return this.#size < items && (this.#size === 0 || this.#byteLength + byteLength <= bytes);
  }

  #evict(lanes: readonly FeedClass[]): T | undefined {
    for (const lane of lanes) {
      const item = this.#take(lane);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  #take(lane: FeedClass): T | undefined {
    const item = this.#lanes[lane].shift()?.item;
    if (item === undefined) return undefined;
    this.#size -= 1;
    this.#byteLength -= item.byteLength;
    return item;
  }
}
