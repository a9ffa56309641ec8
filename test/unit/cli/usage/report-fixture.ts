import { type ResultOf, type UsageGlobal, UsageSum } from "@cookie-agent/sdk/protocol";

export interface Used {
  readonly day: string;
  readonly model: string;
  readonly input?: number;
  /** Dollars; null: unpriced. */
  readonly cost?: number | null;
}

/** A report as the kernel gives it. */
export function reportOf(used: readonly Used[]): ResultOf<typeof UsageGlobal> {
  const total = new UsageSum();
  const days = new Map<string, UsageSum>();
  for (const { day, model, input = 1000, cost = null } of used) {
    const record = {
      resolved_model: { model },
      usage: {
        input_tokens: input,
        input_tokens_no_cache: null,
        input_tokens_cache_read: null,
        input_tokens_cache_write: null,
        output_tokens: 0,
        output_tokens_text: null,
        output_tokens_reasoning: null,
      },
      estimated_cost_pico_usd: cost === null ? null : Math.round(cost * 1e12),
    };
    total.add(record);
    const ofDay = days.get(day) ?? new UsageSum();
    days.set(day, ofDay);
    ofDay.add(record);
  }
  return {
    usage: total.rollup(),
    session_count: 1,
    days: [...days].map(([day, sum]) => ({ day, usage: sum.rollup() })),
    diagnostics: [],
  };
}
