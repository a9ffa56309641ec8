/** Limits of one progress delta and of what a call may show (E-100, T 1.9). */
export const PROGRESS_LIMITS = {
  /** Of `output`. */
  chunks: 8,
  /** Of all chunks together. */
  textBytes: 64 * 1024,
  /** Behind the frame. */
  rawBytes: 512 * 1024,
  /** Of `message`, and of `display`. */
  presentationBytes: 1024,
  /** Of both, in the whole call; what is more is cut. */
  totalPresentationBytes: 64 * 1024,
} as const;

/** Bounds of what one plugin lists while it runs (E-131, E-133). */
export const DYNAMIC_TOOL_LIMITS = {
  /** In one list; also how many resolved ones are kept. */
  tools: 512,
  /** In one list. */
  claims: 128,
  /** Lists that follow faster become one. */
  intervalMs: 100,
} as const;

/** Bounds of one publication (E-151); beyond them it is dropped or rejected, never a malformed frame. */
export const EMIT_LIMITS = {
  nameCharacters: 128,
  /** Of `payload` as JSON. */
  payloadBytes: 256 * 1024,
  /** Of all params as JSON. */
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
