import * as z from "zod";
import {
  boundedText,
  Count,
  Digest,
  JsonObject,
  ModelKey,
  SafeCode,
  StreamName,
  VariantId,
} from "./scalars.ts";

/** A model and how it is asked to behave; `variant: null` is the base behaviour. */
export const ModelSelection = z.object({ model: ModelKey, variant: VariantId.nullable() });
export type ModelSelection = z.infer<typeof ModelSelection>;

/** A model as it was resolved for a run; holds no secret (S 0.3). */
export const ResolvedModel = z.object({
  selection: ModelSelection,
  adapter_id: boundedText(1, 128),
  wire_model_id: boundedText(1, 2048),
  endpoint_identity: boundedText(1, 2048),
  fingerprint: Digest,
});
export type ResolvedModel = z.infer<typeof ResolvedModel>;

const tokens = Count.nullable().default(null);
/** Token counts as the provider reported them; null = not reported. */
export const Usage = z.object({
  input_tokens: tokens,
  input_tokens_no_cache: tokens,
  input_tokens_cache_read: tokens,
  input_tokens_cache_write: tokens,
  output_tokens: tokens,
  output_tokens_text: tokens,
  output_tokens_reasoning: tokens,
});
export type Usage = z.infer<typeof Usage>;

export const FinishReason = z.enum([
  "stop",
  "tool_calls",
  "length",
  "content_filter",
  "cancelled",
  "error",
  "aborted",
  "timeout",
  "refused",
  "unknown",
  "other",
]);
export type FinishReason = z.infer<typeof FinishReason>;

const metadata = JsonObject.optional();
export const TextPart = z.object({ type: z.literal("text"), text: z.string(), metadata });
export const ReasoningPart = z.object({ type: z.literal("reasoning"), text: z.string(), metadata });
/**
 * A tool the model asks for. `input` is the parsed JSON; `raw_input` is kept only when the text did not parse
 * to an object, and then `input` is null.
 */
export const ToolCallPart = z.object({
  type: z.literal("tool_call"),
  /** The model's id, made unique within the run (B118). */
  id: boundedText(1, 512),
  provider_item_id: boundedText(1, 512).nullable().default(null),
  name: boundedText(1, 512),
  input: z.unknown(),
  raw_input: z.string().nullable().default(null),
  metadata,
});
export type ToolCallPart = z.infer<typeof ToolCallPart>;
export const AssistantPart = z.discriminatedUnion("type", [TextPart, ReasoningPart, ToolCallPart]);
export type AssistantPart = z.infer<typeof AssistantPart>;

/** One committed model response (S 0.3). */
export const ModelTurn = z.object({
  content: z.array(AssistantPart).max(4096),
  finish_reason: FinishReason,
  usage: Usage,
  response_metadata: JsonObject.optional(),
  provider_metadata: JsonObject.optional(),
});
export type ModelTurn = z.infer<typeof ModelTurn>;

export const ModelErrorKind = z.enum([
  "transport",
  "timeout",
  "rate_limited",
  "auth",
  "permission_denied",
  "invalid_request",
  "model_not_found",
  "context_length",
  "quota",
  "overload",
  "unsupported",
  "unexpected_eof",
  "invalid_response",
  "invalid_tool_input",
  "content_filter",
  "replay",
  "native_context",
  "provider",
  "abort",
  "unknown",
]);
export type ModelErrorKind = z.infer<typeof ModelErrorKind>;

/** A failed attempt, normalized over providers; never holds headers or credentials (C 5.13). */
export const ModelErrorSummary = z.object({
  kind: ModelErrorKind,
  message: boundedText(1, 4096),
  retryable: z.boolean(),
  stage: boundedText(1, 64),
  http_status: z.int().nullable(),
  bytes_received: Count.nullable(),
  vendor_code: SafeCode.nullable(),
  request_id: boundedText(1, 512).nullable(),
  retry_after_ms: Count.nullable(),
});
export type ModelErrorSummary = z.infer<typeof ModelErrorSummary>;

/** `artifact://<digest>[/<stream>]` for models, `artifact://sha256/<digest>` in stored references (T 3.3). */
export const ArtifactReference = boundedText(12, 1024).refine((uri) =>
  uri.startsWith("artifact://"),
);
export type ArtifactReference = z.infer<typeof ArtifactReference>;

/** One captured stream of a call, complete in the artifact store (T 3.2). */
export const RetainedStream = z.object({
  name: StreamName.nullable(),
  reference: ArtifactReference,
  sha256: Digest,
  byte_length: Count,
  line_count: Count,
  truncated: z.boolean(),
  next_offset: Count.nullable(),
  next_byte: Count.nullable(),
});
export type RetainedStream = z.infer<typeof RetainedStream>;

export const RetainedOutput = z.object({
  reference: ArtifactReference,
  streams: z.array(RetainedStream).min(1).max(8),
  incomplete: z.boolean(),
});
export type RetainedOutput = z.infer<typeof RetainedOutput>;

export const ToolAttachment = z.object({
  mime_type: boundedText(1, 255),
  filename: boundedText(1, 512).nullable(),
  byte_length: Count,
  sha256: Digest,
  reference: ArtifactReference,
});
export type ToolAttachment = z.infer<typeof ToolAttachment>;

/** Words and media for the model behind a result, as a message of their own (T 4.5). */
export const AdditionalMessage = z.object({
  role: z.enum(["system", "user"]),
  content: z
    .array(
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("text"), text: boundedText(1, 64 * 1024) }),
        z.object({ type: z.literal("file"), ...ToolAttachment.shape }),
      ]),
    )
    .min(1)
    .max(257),
});
export type AdditionalMessage = z.infer<typeof AdditionalMessage>;

/** What one finished call left behind; `output` is what the model reads, `display` only what people see. */
export const ToolResult = z.object({
  title: boundedText(1, 1024),
  output: boundedText(0, 2 * 1024 * 1024),
  /** Null: show `output`. */
  display: boundedText(0, 64 * 1024)
    .nullable()
    .default(null),
  metadata: JsonObject,
  retained_output: RetainedOutput.nullable().default(null),
  attachments: z.array(ToolAttachment).max(256),
  additional_messages: z.array(AdditionalMessage).max(4).optional(),
});
export type ToolResult = z.infer<typeof ToolResult>;

export const ToolOutcome = z.enum(["completed", "failed", "cancelled", "interrupted"]);
export type ToolOutcome = z.infer<typeof ToolOutcome>;

/** Why a call did not complete; the message is shown to the model (T 1.11). */
export const ToolCallError = z.object({ code: boundedText(1, 128), message: boundedText(1, 4096) });
export type ToolCallError = z.infer<typeof ToolCallError>;

/** What is shown of a call beside its name (T 1.10). */
export const ToolPresentation = z.object({
  title: boundedText(1, 1024),
  primary_argument: boundedText(0, 512).nullable(),
});
export type ToolPresentation = z.infer<typeof ToolPresentation>;
