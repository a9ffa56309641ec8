/** Limits of one progress delta and of what a call may show (E-100, T 1.9). */
export const PROGRESS_LIMITS = {
  chunks: 8,
  textBytes: 64 * 1024,
  rawBytes: 512 * 1024,
  presentationBytes: 1024,
  totalPresentationBytes: 64 * 1024,
} as const;

/** Bounds of what one plugin lists while it runs (E-131, E-133). */
export const DYNAMIC_TOOL_LIMITS = { tools: 512, claims: 128, intervalMs: 100 } as const;

/** Bounds of one publication (E-151); beyond them it is dropped or rejected, never a malformed frame. */
export const EMIT_LIMITS = {
  nameCharacters: 128,
  payloadBytes: 256 * 1024,
  eventBytes: 272 * 1024,
} as const;

/** Sizes of what hooks may put in place of what they were shown (E-166). */
export const HOOK_LIMITS = {
  /** Of a composed system prompt. */
  systemPromptBytes: 128 * 1024,
  /** Of all additions to the instructions of one compaction, and of what overrides them. */
  compactionBytes: 64 * 1024,
  /** Of a note; what is longer is cut. */
  noteBytes: 1024,
} as const;
