import type { StoredEvent } from "@cookie-agent/sdk/protocol";
import type { SessionLocation } from "../store/session-store.ts";
import type { LogObserver } from "./branch-fold.ts";
import type { SessionFold, TreeConsumer } from "./tree-consumer.ts";

/** What every consumer keeps of one session. */
export interface SessionProducts {
  of<P>(consumer: TreeConsumer<P>): P | undefined;
}

/** The folds of every consumer over one session, while its log is read or written. */
export class ConsumerFolds implements LogObserver, SessionProducts {
  readonly #consumers: readonly TreeConsumer[];
  readonly #location: SessionLocation;
  #folds: ReadonlyMap<TreeConsumer, SessionFold<unknown>> = new Map();

  constructor(consumers: readonly TreeConsumer[], location: SessionLocation) {
    this.#consumers = consumers;
    this.#location = location;
    this.restart();
  }

  restart(): void {
    const location = this.#location;
    this.#folds = new Map(this.#consumers.map((consumer) => [consumer, consumer.begin(location)]));
  }

  apply(event: StoredEvent): void {
    for (const fold of this.#folds.values()) fold.apply(event);
  }

  of<P>(consumer: TreeConsumer<P>): P | undefined {
    return this.#folds.get(consumer)?.product() as P | undefined;
  }

  /** What is kept now, without the folds. */
  freeze(): SessionProducts {
    const products = new Map(
      [...this.#folds].map(([consumer, fold]) => [consumer, fold.product()]),
    );
    return { of: <P>(consumer: TreeConsumer<P>) => products.get(consumer) as P | undefined };
  }
}
