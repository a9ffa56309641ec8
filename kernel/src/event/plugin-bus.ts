import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";

/** What a plugin published: not durable, no cursor, no replay (S 14.3). */
export interface BusEvent {
  readonly sessionId: SessionId;
  /** Who published it. */
  readonly plugin: string;
  readonly name: string;
  readonly payload: unknown;
}

/** Who hears of events. What is handed over must not be changed; taking it must neither wait nor throw. */
export interface BusMember {
  /** An event of any session, once it is on disk; in the order of its session. */
  onRecorded?(event: StoredEvent): void;
  onPublished?(event: BusEvent): void;
}

/** Hands recorded events and publications of plugins to whoever joined; with nobody there it does nothing. */
export class PluginBus {
  readonly #members = new Set<BusMember>();

  /** Returns how to leave. */
  join(member: BusMember): () => void {
    this.#members.add(member);
    return () => {
      this.#members.delete(member);
    };
  }

  recorded(event: StoredEvent): void {
    for (const member of this.#members) member.onRecorded?.(event);
  }

  published(event: BusEvent): void {
    for (const member of this.#members) member.onPublished?.(event);
  }
}
