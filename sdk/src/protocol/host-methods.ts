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
    /** One that the tool declares; absent where its output is single. */
    stream: StreamName.optional(),
    /** Of a delta, at most 64 KiB. */
    text: z.string().optional(),
    /** In place of `text`: so many of the raw bytes. */
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
      /** Lossless; at most 8 chunks. */
      output: z.array(ProgressChunk).optional(),
      /** One line about what goes on, at most 1 KiB. */
      message: z.string().optional(),
      /** In place of what a screen shows of the call, at most 1 KiB. */
      display: z.string().optional(),
    }),
  { raw: true },
);
export type ToolProgress = z.infer<typeof ToolsProgress.params>;

/** A line for the kernel's log; no context needed. */
export const HostLog = notification("host/log", () =>
  fromPlugin({
    /** How much it matters. */
    level: z.enum(["debug", "info", "warn", "error"]),
    /** One line. */
    message: boundedText(0, 4096),
    /** Facts beside it. */
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
      /** `artifact://<digest>`, perhaps with `/<stream>`. */
      uri: boundedText(1, 1024),
      /** Zero-based first line. */
      offset: Count.optional(),
      /** Start inside that line. */
      byte: Count.optional(),
      /** Lines; at most 2000 come. */
      limit: z.int().min(1).optional(),
      /** First byte of a range; the answer then has `data` in place of `text`. */
      byte_offset: Count.optional(),
      /** How many. */
      byte_limit: z.int().min(1).max(MAX_INLINE_ARTIFACT_BYTES).optional(),
    }).refine(isPageOrRange, { error: "expected a page of lines or both members of a byte range" }),
  () =>
    toPlugin({
      /** The page. */
      text: z.string().optional(),
      /** The range, in base64. */
      data: z.string().optional(),
      /** Line to go on at. Null at the end and in a range. */
      next_offset: Count.nullable(),
      /** Byte inside that line, in a range the next `byte_offset`; null at the end. */
      next_byte: Count.nullable(),
      /** Of the whole artifact. */
      total_lines: Count,
      /** Of the whole artifact. */
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
      /** At most 1 MiB. */
      text: z.string().optional(),
      /** Base64 of at most 1 MiB. */
      data: z.string().optional(),
      /** At most 64 MiB; the file stays. */
      scratch: ScratchName.optional(),
    }).refine(({ text, data, scratch }) => isOneOf(text, data, scratch), {
      error: "expected exactly one of text, data, scratch",
    }),
  () =>
    toPlugin({
      /** Its address, for models and other requests. */
      uri: z.string(),
      sha256: Digest,
      /** Its length. */
      bytes: Count,
    }),
);
