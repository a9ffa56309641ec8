import * as z from "zod";
import { EMIT_LIMITS } from "./limits.ts";

// Compiling each schema at its first use costs more than it ever gains here; this has to come before any schema.
z.config({ jitless: true });

/** Length in UTF-8 bytes, the unit of every text limit. */
export function utf8Length(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

const CONTROL = /\p{Cc}/u;

/** A string of `min`..`max` UTF-8 bytes. */
export function boundedText(min: number, max: number) {
  return z.string().refine(
    (text) => {
      // A code unit takes one to three bytes, so most texts need no count.
      if (text.length >= min && text.length * 3 <= max) return true;
      const length = utf8Length(text);
      return length >= min && length <= max;
    },
    { error: `expected ${min} to ${max} bytes` },
  );
}

/** A string of `min`..`max` UTF-8 bytes without control characters. */
export function controlFreeText(min: number, max: number) {
  return boundedText(min, max).refine((text) => !CONTROL.test(text), {
    error: "control characters are not allowed",
  });
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const uuid = () => z.string().regex(UUID, { error: "expected a lower-case UUID" });

/** A durable conversation. UUIDv7. */
export const SessionId = uuid().brand<"SessionId">();
export type SessionId = z.infer<typeof SessionId>;
/** One passage from a prompt to rest. UUIDv7. */
export const RunId = uuid().brand<"RunId">();
export type RunId = z.infer<typeof RunId>;
/** One try at a model response. UUIDv7. */
export const AttemptId = uuid().brand<"AttemptId">();
export type AttemptId = z.infer<typeof AttemptId>;
/** One tool call of one committed turn; the plugin wire calls it `invocation_id`. UUIDv7. */
export const ToolCallId = uuid().brand<"ToolCallId">();
export type ToolCallId = z.infer<typeof ToolCallId>;
/** One approval request. UUIDv7. */
export const ApprovalId = uuid().brand<"ApprovalId">();
export type ApprovalId = z.infer<typeof ApprovalId>;
/** One question of the engine to a model, beside the conversation. UUIDv7. */
export const InternalAgentInvocationId = uuid().brand<"InternalAgentInvocationId">();
export type InternalAgentInvocationId = z.infer<typeof InternalAgentInvocationId>;
/** The work on such a question, to which its usage is recorded. UUIDv7. */
export const InternalAgentRunId = uuid().brand<"InternalAgentRunId">();
export type InternalAgentRunId = z.infer<typeof InternalAgentRunId>;
/** One remembered answer of a person, for a whole tree of sessions (S 6.10). UUIDv7. */
export const TreeApprovalGrantId = uuid().brand<"TreeApprovalGrantId">();
export type TreeApprovalGrantId = z.infer<typeof TreeApprovalGrantId>;
/** A short-lived right to act on the session that triggered a delivery (E-116). */
export const ContextId = boundedText(1, 128).brand<"ContextId">();
export type ContextId = z.infer<typeof ContextId>;

/** SHA-256 as 64 lower-case hex digits. */
export const Digest = z.string().regex(/^[0-9a-f]{64}$/, { error: "expected 64 hex digits" });
export type Digest = z.infer<typeof Digest>;
/** `sha256:` and 64 lower-case hex digits (C-010). */
export const Revision = z.string().regex(/^sha256:[0-9a-f]{64}$/, { error: "invalid revision" });
export type Revision = z.infer<typeof Revision>;

/** An idempotency key chosen by a client: 1 to 256 bytes, no controls. */
export const ClientKey = controlFreeText(1, 256);
export type ClientKey = z.infer<typeof ClientKey>;

/** Agent id, 1 to 64 bytes, single hyphens inside (C-007). */
export const AgentId = z
  .string()
  .max(64, { error: "invalid agent id" })
  .regex(/^[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9]))*$/, { error: "invalid agent id" });
export type AgentId = z.infer<typeof AgentId>;
/** Provider id, 1 to 128 bytes. */
export const ProviderId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,127}$/, { error: "invalid provider id" });
export type ProviderId = z.infer<typeof ProviderId>;
/** Model id within a provider: `/`-separated segments, 1 to 384 bytes (C-006). */
export const ProviderModelId = boundedText(1, 384).refine(
  (id) => /^[^\s\p{Cc}[\]/]+(?:\/[^\s\p{Cc}[\]/]+)*$/u.test(id),
  { error: "invalid provider model id" },
);
export type ProviderModelId = z.infer<typeof ProviderModelId>;
/** `provider/model`, split at the first slash, at most 512 bytes (C-008). */
export const ModelKey = boundedText(3, 512).refine(
  (key) => {
    const slash = key.indexOf("/");
    return (
      slash > 0 &&
      ProviderId.safeParse(key.slice(0, slash)).success &&
      ProviderModelId.safeParse(key.slice(slash + 1)).success
    );
  },
  { error: "invalid model key" },
);
export type ModelKey = z.infer<typeof ModelKey>;
/** Variant id, not the word `base` (C-009). */
export const VariantId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, { error: "invalid variant id" })
  .refine((id) => id !== "base", { error: "invalid variant id" });
export type VariantId = z.infer<typeof VariantId>;

/** 1 to 64 of lower-case letters and digits, with single `_` between them. */
export const SnakeName = z
  .string()
  .max(64, { error: "expected a snake_case name" })
  .regex(/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/, { error: "expected a snake_case name" });
export type SnakeName = z.infer<typeof SnakeName>;

/**
 * The name of a tool as models see it: 1 to 64 of letters, digits, `_`, `-`. A tool that a plugin declares is snake_case;
 * the rest is for names that come from MCP servers (E-070).
 */
export const ToolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, {
  error: "invalid tool name: use letters, digits, _ and -, at most 64",
});
export type ToolName = z.infer<typeof ToolName>;
/** Plugin id, 1 to 128 bytes; `builtin.` is reserved for the composition root (E-031). */
export const PluginName = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,127}$/, {
  error: "invalid plugin name: use a-z, digits, . _ and -, begin with a letter or digit",
});
export type PluginName = z.infer<typeof PluginName>;
/** Name of one output stream; the one validator for declarations, chunks and URI suffixes (T-031). */
export const StreamName = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,64}$/, { error: "invalid stream name" });
export type StreamName = z.infer<typeof StreamName>;
/** A stable machine word: 1 to 128 of `[a-z0-9._-]`. */
export const SafeCode = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,127}$/, { error: "invalid safe code" });
export type SafeCode = z.infer<typeof SafeCode>;
/** RFC 3339 UTC with milliseconds. */
export const Timestamp = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/, { error: "expected an RFC 3339 UTC time" });
export type Timestamp = z.infer<typeof Timestamp>;

/**
 * A permission pattern: `*` and `?` are wildcards, everything else is literal (C-012, C-013).
 * `${workspace_dir}` is the one expression; where it may stand is checked by who knows the action.
 */
export const WildcardPattern = controlFreeText(1, 4096).refine(
  (pattern) => !/[\\[\]{}]/.test(pattern.replaceAll("${workspace_dir}", "")),
  { error: "invalid wildcard pattern" },
);
export type WildcardPattern = z.infer<typeof WildcardPattern>;

/** Any JSON object. */
export const JsonObject = z.record(z.string(), z.unknown());
export type JsonObject = z.infer<typeof JsonObject>;

/** A nonnegative integer that JSON carries exactly. */
export const Count = z.int().min(0);

/** Name of a plugin's own event: 1 to 128 control-free characters (E-151). */
export const EventName = z
  .string()
  .refine(
    (name) =>
      name.length > 0 && [...name].length <= EMIT_LIMITS.nameCharacters && !CONTROL.test(name),
    {
      error: `expected 1 to ${EMIT_LIMITS.nameCharacters} characters without controls`,
    },
  );
/** Payload of a plugin's own event: any JSON value, at most 256 KiB where it is published. */
export const EventValue = z.unknown().refine((value) => value !== undefined, {
  error: "must not be absent",
});
