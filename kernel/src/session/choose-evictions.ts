import type { SessionId } from "@cookie-agent/sdk/protocol";

export interface ResidentChild {
  readonly sessionId: SessionId;
  /** When its last run ended; null while something of it is open or waits (S-102). */
  readonly idleSinceMs: number | null;
}

export interface ResidencyLimits {
  readonly maxResidentSubagents: number;
  readonly idleEvictionAfterMs: number;
}

/** The delegated sessions to put away: above the threshold, the oldest idle ones first, until it is met (S-101). */
export function chooseEvictions<T extends ResidentChild>(
  children: readonly T[],
  { maxResidentSubagents, idleEvictionAfterMs }: ResidencyLimits,
  nowMs: number,
): T[] {
  const excess = children.length - maxResidentSubagents;
  if (excess <= 0) return [];
  return children
    .flatMap((child) => {
      const { idleSinceMs } = child;
      const isIdle = idleSinceMs !== null && nowMs - idleSinceMs >= idleEvictionAfterMs;
      return isIdle ? [{ child, idleSinceMs }] : [];
    })
    .sort((a, b) => a.idleSinceMs - b.idleSinceMs)
    .slice(0, excess)
    .map(({ child }) => child);
}
