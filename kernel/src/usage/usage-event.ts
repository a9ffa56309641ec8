import type { EventPayload } from "@cookie-agent/sdk/protocol";

/** A payload that says what a request used and cost: of a turn, or of an internal agent. */
export type UsagePayload = Extract<EventPayload, { estimated_cost_pico_usd: number | null }>;

export function usageOf(payload: EventPayload): UsagePayload | null {
  return "estimated_cost_pico_usd" in payload ? payload : null;
}
