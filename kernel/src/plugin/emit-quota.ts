import type { SessionId } from "@cookie-agent/sdk/protocol";

export interface EmitQuotaLimits {
  readonly eventsPerSecond: number;
  readonly bytesPerMinute: number;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

interface Publication {
  readonly atMs: number;
  readonly bytes: number;
}

/** How much one plugin may publish in each session, over any second and any minute (E-151). */
export class EmitQuota {
  readonly #limits: EmitQuotaLimits;
  readonly #now: () => number;
  /** Of the last minute, the session that published last at the end. */
  readonly #published = new Map<SessionId, Publication[]>();

  /** @param now Milliseconds that only grow. */
  constructor(limits: EmitQuotaLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** False when it would be too much; then it does not count. */
  take(sessionId: SessionId, bytes: number): boolean {
    const nowMs = this.#now();
    this.#forget(nowMs);
    const published = (this.#published.get(sessionId) ?? []).filter(
      ({ atMs }) => nowMs - atMs < MINUTE_MS,
    );
    const ofSecond = published.filter(({ atMs }) => nowMs - atMs < SECOND_MS).length;
    const ofMinute = published.reduce((sum, publication) => sum + publication.bytes, 0);
    const { eventsPerSecond, bytesPerMinute } = this.#limits;
    if (ofSecond >= eventsPerSecond || ofMinute + bytes > bytesPerMinute) return false;
    this.#published.delete(sessionId);
    this.#published.set(sessionId, [...published, { atMs: nowMs, bytes }]);
    return true;
  }

  #forget(nowMs: number): void {
    for (const [sessionId, published] of this.#published) {
      const last = published.at(-1);
      if (last !== undefined && nowMs - last.atMs < MINUTE_MS) return;
      this.#published.delete(sessionId);
    }
  }
}
