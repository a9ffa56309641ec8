import type { SkippedEvent } from "@cookie-agent/sdk/protocol";

const MAX_LISTED = 1000;

/** The skipped events of one log; beyond the first thousand they are only counted. */
export class SkippedEvents {
  readonly #listed: SkippedEvent[] = [];
  #unlisted = 0;

  add(skipped: SkippedEvent): void {
    if (this.#listed.length < MAX_LISTED) this.#listed.push(skipped);
    else this.#unlisted += 1;
  }

  get list(): readonly SkippedEvent[] {
    if (this.#unlisted === 0) return this.#listed;
    return [...this.#listed, { reason: `${this.#unlisted} more were skipped` }];
  }
}
