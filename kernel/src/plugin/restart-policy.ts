import type { PluginLimits } from "./plugin-limits.ts";

type RestartLimits = Pick<
  PluginLimits,
  "crashes" | "crashWindowMs" | "restartDelayMs" | "maxRestartDelayMs"
>;

/** When a crashed plugin may start again: at once, then after growing delays, then not any more (E-063). */
export class RestartPolicy {
  readonly #limits: RestartLimits;
  #crashes: number[] = [];

  constructor(limits: RestartLimits) {
    this.#limits = limits;
  }

  recordCrash(nowMs: number): void {
    this.#crashes = [...this.#recent(nowMs), nowMs];
  }

  exhausted(nowMs: number): boolean {
    return this.#recent(nowMs).length >= this.#limits.crashes;
  }

  /** Milliseconds until the next start is due. */
  delayMs(nowMs: number): number {
    const recent = this.#recent(nowMs);
    const last = recent.at(-1);
    if (last === undefined || recent.length < 2) return 0;
    const { restartDelayMs, maxRestartDelayMs } = this.#limits;
    const pause = Math.min(maxRestartDelayMs, restartDelayMs * 2 ** (recent.length - 2));
    return Math.max(0, last + pause - nowMs);
  }

  reset(): void {
    this.#crashes = [];
  }

  #recent(nowMs: number): number[] {
    return this.#crashes.filter((time) => nowMs - time < this.#limits.crashWindowMs);
  }
}
