import * as z from "zod";
import { fromPlugin, notification, request, toPlugin } from "./method.ts";
import {
  boundedText,
  ContextId,
  Count,
  Digest,
  JsonObject,
  StreamName,
  ToolCallId,
} from "./scalars.ts";
import { isOneOf, ScratchName } from "./scratch-file.ts";

/** Output of one stream: text, or so many of the raw bytes behind the frame, in the order of the chunks (E-016). */
export const ProgressChunk = z
  .strictObject({
    stream: StreamName.optional(),
    text: z.string().optional(),
    byte_length: Count.optional(),
  })
  .refine((chunk) => (chunk.text === undefined) !== (chunk.byte_length === undefined), {
    error: "expected exactly one of text, byte_length",
  });
export type ProgressChunk = z.infer<typeof ProgressChunk>;

/**
 * Output and news of a running call (E-100). The limits are not part of the schema: a delta beyond them fails
 * its call with `progress_limit` instead of being a malformed frame.
 */
export const ToolsProgress = notification(
  "host/tools/progress",
  () =>
    fromPlugin({
      invocation_id: ToolCallId,
      output: z.array(ProgressChunk).optional(),
      message: z.string().optional(),
      display: z.string().optional(),
    }),
  { raw: true },
);
export type ToolProgress = z.infer<typeof ToolsProgress.params>;

/** A line for the kernel's log; no context needed. */
export const HostLog = notification("host/log", () =>
  fromPlugin({
    level: z.enum(["debug", "info", "warn", "error"]),
    message: boundedText(0, 4096),
    fields: JsonObject.optional(),
  }),
);

/** Most bytes that one request carries inline, either way (E 12). */
export const MAX_INLINE_ARTIFACT_BYTES = 1024 * 1024;

/**
 * Reads one page of an artifact's text, where a line over the page bound goes on by `byte`, or a range of its bytes
 * (E-118, T 3.3).
 */
export const ArtifactsRead = request(
  "host/artifacts/read",
  () =>
    fromPlugin({
      context_id: ContextId,
      uri: boundedText(1, 1024),
      /** Zero-based first line. */
      offset: Count.optional(),
      /** Start inside that line. */
      byte: Count.optional(),
      limit: z.int().min(1).optional(),
      /** First byte of a range; the answer then has `data` in place of `text`. */
      byte_offset: Count.optional(),
      byte_limit: z.int().min(1).max(MAX_INLINE_ARTIFACT_BYTES).optional(),
    }).refine(isPageOrRange, { error: "expected a page of lines or both members of a byte range" }),
  () =>
    toPlugin({
      text: z.string().optional(),
      /** Base64. */
      data: z.string().optional(),
      /** Null at the end and in a range. */
      next_offset: Count.nullable(),
      /** Byte inside that line, in a range the next `byte_offset`; null at the end. */
      next_byte: Count.nullable(),
      total_lines: Count,
      total_bytes: Count,
      /** `artifact` or `artifact.<stream>`. */
      source: z.string(),
    }),
);

function isPageOrRange(params: {
  readonly offset?: number | undefined;
  readonly byte?: number | undefined;
  readonly limit?: number | undefined;
  readonly byte_offset?: number | undefined;
  readonly byte_limit?: number | undefined;
}): boolean {
  const { offset, byte, limit, byte_offset: first, byte_limit: length } = params;
  if (first === undefined && length === undefined) return true;
  const lines = [offset, byte, limit].filter((member) => member !== undefined);
  return first !== undefined && length !== undefined && lines.length === 0;
}

/** Stores text, bytes or a file of the scratch directory as an artifact of the calling session (E-118). */
export const ArtifactsWrite = request(
  "host/artifacts/write",
  () =>
    fromPlugin({
      context_id: ContextId,
      text: z.string().optional(),
      /** Base64. */
      data: z.string().optional(),
      scratch: ScratchName.optional(),
    }).refine(({ text, data, scratch }) => isOneOf(text, data, scratch), {
      error: "expected exactly one of text, data, scratch",
    }),
  () => toPlugin({ uri: z.string(), sha256: Digest, bytes: Count }),
);
