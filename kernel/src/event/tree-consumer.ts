import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import type { SessionLocation } from "../store/session-store.ts";

/** What somebody keeps of one session, folded from the events that count; after a revert a new one begins. */
export interface SessionFold<P> {
  /** Called in seq order. */
  apply(event: StoredEvent): void;
  /** What is kept now; asked for at any time, and for the last time when the session is closed. */
  product(): P;
}

/** Somebody who keeps something of every session of a tree, open here or not (S 3.5). */
export interface TreeConsumer<P = unknown> {
  /** An empty fold for a log that is about to be read, or for a session that begins. */
  begin(location: SessionLocation): SessionFold<P>;
  /**
   * Told once of each load, before whoever asked for the tree gets it. A rejection fails that access; at the next one
   * the products are offered again without reading anything anew (S-078).
   */
  accept?(tree: TreeProducts): Promise<void> | void;
}

/** What the consumers keep of the sessions of one tree. */
export interface TreeProducts {
  readonly rootId: SessionId;
  /** Every readable session of the tree, its root among them where that is readable. */
  readonly sessionIds: readonly SessionId[];
  /** Current for a session that is open here, else as its log had it. Undefined for one that is not of the tree. */
  productOf<P>(consumer: TreeConsumer<P>, sessionId: SessionId): P | undefined;
}
