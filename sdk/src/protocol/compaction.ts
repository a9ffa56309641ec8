import * as z from "zod";
import { request } from "./method.ts";
import {
  boundedText,
  Count,
  Digest,
  InternalAgentInvocationId,
  InternalAgentRunId,
  JsonObject,
  SessionId,
} from "./scalars.ts";

const Seq = z.int().min(1);

/** What stands in place of the messages that a checkpoint folds away. */
export const Checkpoint = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("internal_summary"),
    summary: boundedText(1, 2 * 1024 * 1024),
    byte_length: z.int().min(1),
    sha256: Digest,
    /** Of the internal agent that wrote it. */
    invocation_id: InternalAgentInvocationId,
    internal_run_id: InternalAgentRunId,
  }),
  /** A provider's own form; whoever cannot use it rebuilds the history from the events. */
  z.object({ type: z.literal("native_window"), window: JsonObject }),
]);
export type Checkpoint = z.infer<typeof Checkpoint>;

/** Which events a checkpoint stands for; the messages from `recent_from_seq` on stay beside it. */
export const CheckpointBoundaries = z.object({
  source_from_seq: Seq,
  source_through_seq: Seq,
  input_through_seq: Count,
  prior_checkpoint_seq: Seq.nullable(),
  recent_from_seq: Seq.optional(),
});
export type CheckpointBoundaries = z.infer<typeof CheckpointBoundaries>;

/** Estimates and limits that a checkpoint was made with; null: the model's context limit is unknown. */
export const CheckpointBudgets = z.object({
  context_limit_tokens: Count.nullable(),
  trigger_tokens: Count.nullable(),
  input_tokens_before: Count,
  input_tokens_after: Count,
  max_summary_bytes: z.int().min(1),
  /** Absent: 0. */
  keep_recent_tokens: Count.optional(),
});

/** One file as it stands on disk after a checkpoint. */
export const RehydratedFile = z.object({
  /** The permission label: relative to the workspace root, absolute outside it. */
  path: boundedText(1, 4096),
  /** From its beginning, at most 32 KiB. */
  content: boundedText(0, 32 * 1024),
  /** Of the whole file. */
  byte_length: Count,
  /** Of `content`. */
  sha256: Digest,
});
export type RehydratedFile = z.infer<typeof RehydratedFile>;

/** Summarizes an idle session; `focus` says what matters. */
export const SessionCompact = request(
  "session.compact",
  () => z.strictObject({ session_id: SessionId, focus: boundedText(0, 16 * 1024).nullish() }),
  () =>
    z.object({
      compacted: z.boolean(),
      /** A plugin kept it from happening. */
      cancellation_reason: z.string().optional(),
      /** It was tried and did not succeed; the conversation is as it was. */
      failure: z.string().optional(),
    }),
);
