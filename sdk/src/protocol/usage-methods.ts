import * as z from "zod";
import { request } from "./method.ts";
import { AgentId, boundedText, Count, ModelKey, SessionId } from "./scalars.ts";

/** Sums over model requests; what a provider did not report adds nothing to them (S 13). */
export const UsageTotals = z.object({
  /** Inclusive of what came from or went to a cache. */
  input_tokens: Count,
  /** Inclusive of reasoning. */
  output_tokens: Count,
  reasoning_tokens: Count,
  cache_read_tokens: Count,
  cache_write_tokens: Count,
  request_count: Count,
  /** Part of the input that came from a cache, 0 to 1; null unless every request reported both. */
  cache_hit_rate: z.number().min(0).max(1).nullable(),
  /** US dollars; null without a request or when one of them is unpriced, for partial sums mislead. */
  estimated_cost_usd: z.number().min(0).nullable(),
});
export type UsageTotals = z.infer<typeof UsageTotals>;

export const UsageRollup = z.object({
  ...UsageTotals.shape,
  /** By model key, sorted. */
  by_model: z.record(z.string(), UsageTotals),
});
export type UsageRollup = z.infer<typeof UsageRollup>;

/** A calendar day. */
export const Day = z.string().regex(/^\d{4}-\d\d-\d\d$/, { error: "expected a day as YYYY-MM-DD" });
export type Day = z.infer<typeof Day>;

/** What the visible branch of one session used; its children apart. */
export const SessionUsage = request(
  "session.usage",
  () => z.strictObject({ session_id: SessionId }),
  () => z.object({ session_id: SessionId, usage: UsageRollup }),
);
/**
 * The same for a session with all its descendants. Rejects with `tree_session_not_found` or `corrupt_delegation`.
 */
export const SessionTreeUsage = request(
  "session.tree_usage",
  () => z.strictObject({ session_id: SessionId }),
  () => z.object({ session_id: SessionId, usage: UsageRollup, session_count: z.int().min(1) }),
);
/** What one agent used in all sessions of the work directory, internal agents too. */
export const AgentUsage = request(
  "agent.usage",
  () => z.strictObject({ agent_id: AgentId }),
  () => z.object({ agent_id: AgentId, usage: UsageRollup }),
);
/**
 * What was used at all: unlike the rollup of a session it keeps what a revert hid, and counts what a fork copied only
 * where it was made. Without a param it covers the sessions of the work directory.
 */
export const UsageGlobal = request(
  "usage.global",
  () =>
    z.strictObject({
      /** Every work directory whose sessions lie beside this one's. */
      everything: z.boolean().optional(),
      /** Only this session and its descendants. */
      session_id: SessionId.optional(),
      agent_id: AgentId.optional(),
      model: ModelKey.optional(),
      /** An IANA name; asks for `days`, which are those of this zone. */
      time_zone: boundedText(1, 64).optional(),
      /** The first day that counts; needs `time_zone`. */
      since_day: Day.optional(),
    }),
  () =>
    z.object({
      usage: UsageRollup,
      /** Sessions that used something of this. */
      session_count: Count,
      /** Days on which something was used, oldest first. */
      days: z.array(z.object({ day: Day, usage: UsageRollup })).optional(),
      /** One line for each session or store that could not be read and is missing from the sums. */
      diagnostics: z.array(z.string()),
    }),
);
