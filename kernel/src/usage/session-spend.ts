import type { EventPayload, StoredEvent } from "@cookie-agent/sdk/protocol";
import { ActiveTime } from "./active-time.ts";
import { usageOf } from "./usage-event.ts";

/** What one session took of its tree's budget, hidden branches included (S 5.11). */
export class SessionSpend {
  costPicoUsd = 0n;
  tokens = 0;
  turns = 0;
  /** The spans of ended runs. */
  readonly active = new ActiveTime();
  readonly #onUnpriced: (model: string) => void;
  #runStartedMs: number | null = null;
  #lastEventMs = 0;

  constructor(onUnpriced: (model: string) => void) {
    this.#onUnpriced = onUnpriced;
  }

  /** Null while no run is under way. */
  get runStartedMs(): number | null {
    return this.#runStartedMs;
  }

  apply({ timestamp, payload }: StoredEvent): void {
    const timeMs = Date.parse(timestamp);
    switch (payload.type) {
      case "run_started":
        this.#runStartedMs = timeMs;
        break;
      case "run_completed":
      case "run_failed":
      case "run_cancelled":
        this.#endRun(timeMs);
        break;
      case "run_interrupted":
        // Written when the session is opened again, maybe days after the run's last sign of life.
        this.endRun();
        break;
      default:
        this.take(payload);
        break;
    }
    this.#lastEventMs = timeMs;
  }

  /** A run that nobody goes on with ended with the last event. */
  endRun(): void {
    this.#endRun(this.#lastEventMs);
  }

  /** Counts what does not depend on when it was recorded. */
  take(payload: EventPayload): void {
    if (payload.type === "model_turn_committed") this.turns += 1;
    const used = usageOf(payload);
    if (used === null) return;
    this.tokens += (used.usage.input_tokens ?? 0) + (used.usage.output_tokens ?? 0);
    const { estimated_cost_pico_usd: cost } = used;
    if (cost === null) this.#onUnpriced(used.resolved_model.model);
    else this.costPicoUsd += BigInt(cost);
  }

  #endRun(timeMs: number): void {
    if (this.#runStartedMs !== null) this.active.add(this.#runStartedMs, timeMs);
    this.#runStartedMs = null;
  }
}
