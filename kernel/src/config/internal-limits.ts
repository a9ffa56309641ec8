interface InternalLimits {
  readonly timeoutMs: number;
  readonly maxOutputTokens: number;
}

/** Caps of the internal agents; those it does not list have the last ones (C-081). */
const INTERNAL_LIMITS: ReadonlyMap<string, InternalLimits> = new Map([
  ["approval", { timeoutMs: 30_000, maxOutputTokens: 2048 }],
  ["compaction", { timeoutMs: 180_000, maxOutputTokens: 4096 }],
  ["title", { timeoutMs: 10_000, maxOutputTokens: 128 }],
]);
const OTHER_INTERNAL_LIMITS: InternalLimits = { timeoutMs: 30_000, maxOutputTokens: 2048 };

/** What an internal agent of this id is held to where its document says nothing (C 3.5). */
export function internalLimitsOf(id: string): InternalLimits {
  return INTERNAL_LIMITS.get(id) ?? OTHER_INTERNAL_LIMITS;
}

/** True of an id that only an internal agent may have. */
export function isInternalId(id: string): boolean {
  return INTERNAL_LIMITS.has(id);
}
