import type { EventPayload, RunId, SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { USAGE } from "../event/event-fixtures.ts";

export interface RecordOptions {
  readonly model?: string;
  readonly agent?: string;
  readonly input?: number | null;
  readonly output?: number | null;
  readonly cacheRead?: number | null;
  readonly cost?: number | null;
}

export function usageRecord(options: RecordOptions = {}): EventPayload {
  const { model = "custom.test/model", agent = "default", cost = null } = options;
  return {
    type: "model_usage_recorded",
    model_turn_seq: 1,
    agent_id: agent,
    resolved_model: { model, variant: null },
    usage: {
      ...USAGE,
      input_tokens: options.input === undefined ? 1 : options.input,
      output_tokens: options.output === undefined ? 1 : options.output,
      input_tokens_cache_read: options.cacheRead ?? null,
    },
    estimated_cost_pico_usd: cost,
  };
}

/** Events of one log, each at its own time. */
export class EventMaker {
  readonly sessionId: SessionId;
  #seq = 0;

  constructor(sessionId: SessionId = createId<SessionId>()) {
    this.sessionId = sessionId;
  }

  at(timeMs: number, payload: EventPayload, runId: RunId | null = null): StoredEvent {
    this.#seq += 1;
    const timestamp = new Date(timeMs).toISOString();
    return { session_id: this.sessionId, run_id: runId, seq: this.#seq, timestamp, payload };
  }
}
