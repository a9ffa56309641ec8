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

/** Limits of one progress delta and of what a call may show (E-100, T 1.9). */
export const PROGRESS_LIMITS = {
  chunks: 8,
  textBytes: 64 * 1024,
  rawBytes: 512 * 1024,
  presentationBytes: 1024,
  totalPresentationBytes: 64 * 1024,
} as const;

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
  fromPlugin({
    invocation_id: ToolCallId,
    output: z.array(ProgressChunk).optional(),
    message: z.string().optional(),
    display: z.string().optional(),
  }),
  { raw: true },
);
export type ToolProgress = z.infer<typeof ToolsProgress.params>;

export const HostLog = notification(
  "host/log",
  fromPlugin({
    level: z.enum(["debug", "info", "warn", "error"]),
    message: boundedText(0, 4096),
    fields: JsonObject.optional(),
  }),
);

/** Reads one page of an artifact; a line over the page bound goes on by `byte` (E-118, T 3.3). */
export const ArtifactsRead = request(
  "host/artifacts/read",
  fromPlugin({
    context_id: ContextId,
    uri: boundedText(1, 1024),
    /** Zero-based first line. */
    offset: Count.optional(),
    /** Start inside that line. */
    byte: Count.optional(),
    limit: z.int().min(1).optional(),
  }),
  toPlugin({
    text: z.string(),
    next_offset: Count.nullable(),
    next_byte: Count.nullable(),
    total_lines: Count,
    total_bytes: Count,
    /** `artifact` or `artifact.<stream>`. */
    source: z.string(),
  }),
);

/** Stores bytes as an artifact of the calling session (E-118). */
export const ArtifactsWrite = request(
  "host/artifacts/write",
  fromPlugin({
    context_id: ContextId,
    text: z.string().optional(),
    /** Base64. */
    data: z.string().optional(),
  }).refine((params) => (params.text === undefined) !== (params.data === undefined), {
    error: "expected exactly one of text, data",
  }),
  toPlugin({ uri: z.string(), sha256: Digest, bytes: Count }),
);
