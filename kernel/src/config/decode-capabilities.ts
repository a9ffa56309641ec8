import { bareRecord } from "./bare-record.ts";
import type { InputKind, MediaLimits, ModelCapabilities } from "./provider-config.ts";
import { TableReader, type TextRule } from "./table-reader.ts";

const KEYS = [
  "input",
  "output",
  "context_tokens",
  "output_tokens",
  "tool_calling",
  "parallel_tool_calls",
  "structured_output",
  "reasoning",
  "temperature",
  "top_p",
  "seed",
  "native_replay",
  "cancellation",
  "media",
];
const MEDIA_KINDS = ["image", "audio", "pdf", "video"] as const;
const INPUT_KINDS: readonly string[] = ["text", ...MEDIA_KINDS];

const inputKind: TextRule = (text) =>
  INPUT_KINDS.includes(text) ? undefined : `expected one of ${INPUT_KINDS.join(", ")}`;

const mimeType: TextRule = (text) =>
  text.length <= 255 && /^[^\s\p{Cc}/]+\/[^\s\p{Cc}/]+$/u.test(text)
    ? undefined
    : "expected a MIME type";

/** What a model is taken for that says nothing of itself. */
const USUAL_CONTEXT_TOKENS = 128_000;
const USUAL_OUTPUT_TOKENS = 16_384;

/** Decodes the `capabilities` table of a custom model; what it leaves out is as with most models (C 5.4). */
export function decodeCapabilities(
  model: TableReader,
  usual: { readonly toolCalling: boolean },
): ModelCapabilities {
  const reader =
    model.table("capabilities", KEYS) ?? new TableReader(bareRecord(), model.at("capabilities"));
  const flag = (key: string) => reader.boolean(key) ?? false;
  const count = (key: string) => reader.integer(key, { min: 1 });
  const input = decodeInput(reader);
  checkOutput(reader);
  const contextTokens = count("context_tokens") ?? USUAL_CONTEXT_TOKENS;
  const outputTokens = count("output_tokens") ?? Math.min(USUAL_OUTPUT_TOKENS, contextTokens);
  if (outputTokens > contextTokens) {
    throw reader.fail("provider_invalid", "output_tokens", "must not exceed context_tokens");
  }
  const toolCalling = reader.boolean("tool_calling") ?? usual.toolCalling;
  const parallelToolCalls = reader.boolean("parallel_tool_calls") ?? toolCalling;
  if (parallelToolCalls && !toolCalling) {
    throw reader.fail("provider_invalid", "parallel_tool_calls", "needs tool_calling");
  }
  reader.oneOf("cancellation", ["local_only"]);
  const nativeReplay = reader.oneOf("native_replay", ["unsupported", "optional", "required"]);
  return {
    input,
    contextTokens,
    outputTokens,
    toolCalling,
    parallelToolCalls,
    structuredOutput: flag("structured_output"),
    reasoning: flag("reasoning"),
    temperature: flag("temperature"),
    topP: flag("top_p"),
    seed: flag("seed"),
    ...(nativeReplay === undefined ? {} : { nativeReplay }),
    media: decodeMedia(reader, input),
  };
}

function decodeInput(reader: TableReader): InputKind[] {
  const names = reader.strings("input", inputKind) ?? ["text"];
  const kinds = (["text", ...MEDIA_KINDS] as const).filter((kind) => names.includes(kind));
  if (kinds.length !== names.length) {
    throw reader.fail("provider_invalid", "input", "an entry is there twice");
  }
  if (!names.includes("text")) throw reader.fail("provider_invalid", "input", "must contain text");
  return kinds;
}

function checkOutput(reader: TableReader): void {
  const output = reader.strings("output");
  if (output === undefined) return;
  if (output.length !== 1 || output[0] !== "text") {
    throw reader.fail("provider_invalid", "output", 'must be exactly ["text"]');
  }
}

/** Limits are authored for exactly the inputs that are not text. */
function decodeMedia(
  capabilities: TableReader,
  input: readonly InputKind[],
): ModelCapabilities["media"] {
  const media = new Map<Exclude<InputKind, "text">, MediaLimits>();
  const reader = capabilities.table("media", MEDIA_KINDS);
  for (const kind of MEDIA_KINDS) {
    const limits = reader?.table(kind, ["mime_types", "max_bytes", "max_count"]);
    if ((limits !== undefined) !== input.includes(kind)) {
      throw capabilities.fail(
        "provider_invalid",
        ["media", kind],
        limits === undefined ? "is required by input" : "is not among input",
        limits === undefined ? "add it" : "remove it",
      );
    }
    if (limits === undefined) continue;
    const mimeTypes = limits.required("mime_types", limits.strings("mime_types", mimeType));
    if (mimeTypes.length === 0) {
      throw limits.fail("provider_invalid", "mime_types", "must not be empty");
    }
    media.set(kind, {
      mimeTypes,
      maxBytes: limits.required("max_bytes", limits.integer("max_bytes", { min: 1 })),
      maxCount: limits.required("max_count", limits.integer("max_count", { min: 1 })),
    });
  }
  return media;
}
