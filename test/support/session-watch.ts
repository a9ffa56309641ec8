import type { CookieClient, SessionNews, SubscribeOptions } from "@cookie-agent/sdk/client";
import type {
  EventPayload,
  EventPayloadOf,
  EventType,
  SessionId,
  StoredEvent,
} from "@cookie-agent/sdk/protocol";

const TERMINAL: ReadonlySet<string> = new Set<EventType>([
  "run_completed",
  "run_failed",
  "run_cancelled",
  "run_interrupted",
]);

/** Everything one subscription has delivered, and a way to wait for what it will deliver. */
export class SessionWatch {
  readonly news: SessionNews[] = [];
  readonly ended: Promise<void>;
  readonly #waiters = new Set<() => void>();
  #over: { readonly error?: unknown } | null = null;

  constructor(client: CookieClient, sessionId: SessionId, options: SubscribeOptions = {}) {
    this.ended = this.#follow(client.subscribe(sessionId, options));
    this.ended.catch(() => undefined);
  }

  get events(): StoredEvent[] {
    return this.news.flatMap((item) => (item.type === "event" ? [item.event] : []));
  }

  get types(): string[] {
    return this.events.map(({ payload }) => payload.type);
  }

  payloads<T extends EventType>(type: T): EventPayloadOf<T>[] {
    return payloadsOf(this.events, type);
  }

  /** The first event of a type that matches, whether it came already or is still to come. */
  async event<T extends EventType>(
    type: T,
    matches: (payload: EventPayloadOf<T>, event: StoredEvent) => boolean = () => true,
  ): Promise<StoredEvent<EventPayloadOf<T>>> {
    const found = await this.#until(() =>
      this.events.find((event) => isOf(event, type) && matches(event.payload, event)),
    );
    return found as StoredEvent<EventPayloadOf<T>>;
  }

  /** The terminal event of a run. */
  async end(runId: string): Promise<EventPayload> {
    const found = await this.#until(() =>
      this.events.find((event) => event.run_id === runId && TERMINAL.has(event.payload.type)),
    );
    return found.payload;
  }

  /** Text of one running call's output, once it contains `part`. */
  async output(part: string): Promise<string> {
    return this.#until(() => {
      const text = this.news
        .map((item) => (item.type === "output" ? Buffer.from(item.data, "base64").toString() : ""))
        .join("");
      return text.includes(part) ? text : undefined;
    });
  }

  async #follow(subscription: AsyncGenerator<SessionNews, void, undefined>): Promise<void> {
    try {
      for await (const item of subscription) {
        this.news.push(item);
        this.#wake();
      }
      this.#over = {};
    } catch (error) {
      this.#over = { error };
      throw error;
    } finally {
      this.#wake();
    }
  }

  async #until<T>(find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (this.#over !== null) {
        throw new Error(`the subscription ended after: ${this.types.join(", ")}`, {
          cause: this.#over.error,
        });
      }
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  #wake(): void {
    for (const wake of this.#waiters) wake();
    this.#waiters.clear();
  }
}

/** The payloads of one type, in order. */
export function payloadsOf<T extends EventType>(
  events: readonly StoredEvent[],
  type: T,
): EventPayloadOf<T>[] {
  return events.flatMap((event) => (isOf(event, type) ? [event.payload] : []));
}

function isOf<T extends EventType>(
  event: StoredEvent,
  type: T,
): event is StoredEvent<EventPayloadOf<T>> {
  return event.payload.type === type;
}
