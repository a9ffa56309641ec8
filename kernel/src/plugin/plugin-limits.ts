import { DYNAMIC_TOOL_LIMITS } from "@cookie-agent/sdk/protocol";
import type { EmitQuotaLimits } from "./emit-quota.ts";
import type { EmitTokenLimits } from "./emit-tokens.ts";
import type { FeedBounds } from "./feed-queue.ts";

/** Times and sizes of section 12 of the extension protocol that this room enforces. */
export interface PluginLimits {
  readonly parallelStarts: number;
  readonly queuedRequests: number;
  readonly prepareTimeoutMs: number;
  readonly pingTimeoutMs: number;
  readonly serviceTimeoutMs: number;
  /** How long a cancelled request may still clean up and report progress (E-105). */
  readonly cancelCleanupMs: number;
  /** Silence after abandonment that makes a plugin suspect (E-062). */
  readonly deafAfterMs: number;
  /** Abandoned requests a shared host may still be working on (E-062). */
  readonly abandonedRequests: number;
  readonly crashes: number;
  readonly crashWindowMs: number;
  /** Wait before the first delayed restart; doubles up to `maxRestartDelayMs` (E-063). */
  readonly restartDelayMs: number;
  readonly maxRestartDelayMs: number;
  readonly ownBadLines: { readonly count: number; readonly windowMs: number };
  readonly sharedBadLines: { readonly count: number; readonly windowMs: number };
  /** How long a reload lets open requests finish (E-064). */
  readonly drainMs: number;
  /** How long a killed process may take to be reaped (E-065). */
  readonly reapMs: number;
  /** Captured bytes after which an acknowledgement is due; with one delta more at most 256 KiB (E-103). */
  readonly ackBytes: number;
  /** Between two dynamic tool lists of one process (E-131). */
  readonly toolListIntervalMs: number;
  readonly stdinChunkBytes: number;
  readonly pendingStdinWrites: number;
  /** What may wait for a plugin that does not read (E-143). */
  readonly feed: FeedBounds;
  /** Rights to publish (E-148). */
  readonly emitTokens: EmitTokenLimits;
  /** Per session (E-151). */
  readonly emitQuota: EmitQuotaLimits;
}

export const PLUGIN_LIMITS: PluginLimits = {
  parallelStarts: 4,
  queuedRequests: 1024,
  prepareTimeoutMs: 5_000,
  pingTimeoutMs: 2_000,
  serviceTimeoutMs: 30_000,
  cancelCleanupMs: 2_000,
  deafAfterMs: 10_000,
  abandonedRequests: 16,
  crashes: 5,
  crashWindowMs: 600_000,
  restartDelayMs: 1_000,
  maxRestartDelayMs: 30_000,
  ownBadLines: { count: 20, windowMs: 10_000 },
  sharedBadLines: { count: 3, windowMs: Number.POSITIVE_INFINITY },
  drainMs: 60_000,
  reapMs: 4_000,
  ackBytes: 192 * 1024,
  toolListIntervalMs: DYNAMIC_TOOL_LIMITS.intervalMs,
  stdinChunkBytes: 64 * 1024,
  pendingStdinWrites: 64,
  feed: { items: 1024, bytes: 32 * 1024 * 1024 },
  emitTokens: { lifeMs: 5_000, active: 1024, spent: 256, spentMs: 30_000 },
  emitQuota: { eventsPerSecond: 40, bytesPerMinute: 4 * 1024 * 1024 },
};
