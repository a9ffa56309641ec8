import type { Notification, ParamsInput } from "@cookie-agent/sdk/protocol";

/** What a subscription needs of the connection that it lives on. */
export interface SubscriberPort {
  /** Resolves once the connection has room for more. */
  notify<N extends Notification>(notification: N, params: ParamsInput<N>): Promise<void>;
  /** Runs `cleanup` when the connection ends, at once if it has; the returned function takes that back. */
  onEnd(cleanup: () => void): () => void;
}
